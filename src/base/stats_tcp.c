/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one file that knows the kernel's struct tcp_info: <linux/tcp.h> and <netinet/tcp.h> clash. */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/stats.h"

int pep_stats_tcp_read(int fd, struct pep_stats_tcp *ret)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);

	/* An older kernel gives less: what it does not know reads 0. */
	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
		return -errno;

	*ret = (struct pep_stats_tcp){
		.bytes_acked = info.tcpi_bytes_acked,
		.bytes_received = info.tcpi_bytes_received,
		.bytes_sent = info.tcpi_bytes_sent,
		.bytes_retrans = info.tcpi_bytes_retrans,
		.delivery_rate = info.tcpi_delivery_rate,
		.pacing_rate = info.tcpi_pacing_rate,
		.busy_us = info.tcpi_busy_time,
		.rwnd_limited_us = info.tcpi_rwnd_limited,
		.sndbuf_limited_us = info.tcpi_sndbuf_limited,
		.srtt_us = info.tcpi_rtt,
		.rttvar_us = info.tcpi_rttvar,
		.min_rtt_us = info.tcpi_min_rtt,
		.rto_us = info.tcpi_rto,
		.rcv_rtt_us = info.tcpi_rcv_rtt,
		.cwnd = info.tcpi_snd_cwnd,
		.ssthresh = info.tcpi_snd_ssthresh,
		.snd_mss = info.tcpi_snd_mss,
		.rcv_mss = info.tcpi_rcv_mss,
		.unacked = info.tcpi_unacked,
		.lost = info.tcpi_lost,
		.retrans_total = info.tcpi_total_retrans,
		.reordering = info.tcpi_reordering,
		.delivered = info.tcpi_delivered,
		.data_segs_in = info.tcpi_data_segs_in,
		.data_segs_out = info.tcpi_data_segs_out,
		.rcv_ooo = info.tcpi_rcv_ooopack,
		.notsent_bytes = info.tcpi_notsent_bytes,
		.snd_wnd = info.tcpi_snd_wnd,
		.rcv_space = info.tcpi_rcv_space,
		.rcv_ssthresh = info.tcpi_rcv_ssthresh,
		.state = info.tcpi_state,
		.ca_state = info.tcpi_ca_state,
		.backoff = info.tcpi_backoff,
		.valid = 1,
	};
	return 0;
}
