/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_BPF_KERNEL_H
#define PEP_CCA_BPF_KERNEL_H

/*
 * The few kernel types our programs touch. Offsets are not those written here: every access is
 * relocated against the running kernel's BTF when a program is loaded, so that neither kernel
 * headers nor a generated vmlinux.h are needed to build.
 */

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* Enumerators of the BPF user interface that <linux/bpf.h> would bring along with much else. */
#define PEP_BPF_MAP_TYPE_SK_STORAGE     24
#define PEP_BPF_F_NO_PREALLOC           1
#define PEP_BPF_SK_STORAGE_GET_F_CREATE 1

#define PEP_TCP_CONG_NON_RESTRICTED 1 /* tcp_congestion_ops.flags: any user may select it */
#define PEP_CA_EVENT_TX_START       0 /* enum tcp_ca_event */
#define PEP_SK_PACING_NONE          0 /* enum sk_pacing */
#define PEP_SK_PACING_NEEDED        1

#define PEP_KERNEL_TYPE __attribute__((preserve_access_index))

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
	__u8 sk_pacing_shift;
} PEP_KERNEL_TYPE;

struct inet_sock {
	struct sock sk;
} PEP_KERNEL_TYPE;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
} PEP_KERNEL_TYPE;

struct minmax_sample {
	__u32 t;
	__u32 v;
} PEP_KERNEL_TYPE;

struct minmax {
	struct minmax_sample s[3];
} PEP_KERNEL_TYPE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u64 tcp_clock_cache;
	__u64 tcp_mstamp;
	__u64 tcp_wstamp_ns;
	__u64 delivered_mstamp;
	struct minmax rtt_min;
	__u32 srtt_us;
	__u32 mdev_us;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 max_packets_out;
	__u32 snd_ssthresh;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 mss_cache;
	__u32 delivered;
	__u32 lost;
	__u32 app_limited;
	__u8 is_cwnd_limited : 1;
} PEP_KERNEL_TYPE;

struct rate_sample {
	__u32 prior_delivered;
	__s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	__u32 acked_sacked;
	__u32 prior_in_flight;
	_Bool is_app_limited;
	_Bool is_ack_delayed;
} PEP_KERNEL_TYPE;

/*
 * The members we fill. libbpf looks each up by name in the running kernel and refuses the object
 * when one is missing there, hence the variants (see Makefile.inc):
 * PEP_ARGS       arguments of cong_control: 2 (5.6 - 6.9) or 4 (6.10 and later)
 * PEP_TX_START   the kernel has cwnd_event_tx_start (7.1 and later)
 */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, __u8 state);
#ifdef PEP_TX_START
	void (*cwnd_event_tx_start)(struct sock *sk);
#else
	void (*cwnd_event)(struct sock *sk, int event);
#endif
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#endif
