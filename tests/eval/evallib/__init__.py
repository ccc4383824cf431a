# SPDX-License-Identifier: GPL-2.0-or-later
"""What the studies have in common: runs on the lab that are kept, and the report."""
