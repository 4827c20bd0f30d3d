// Output of Linux, for tests of its parsers.

export const meminfo = `MemTotal:       24684084 kB
MemFree:        23371084 kB
MemAvailable:   23919520 kB
Buffers:          290084 kB
Cached:           251456 kB
SwapCached:            0 kB
Active:           652076 kB
Inactive:        1273268 kB
SwapTotal:             0 kB
SwapFree:              0 kB
Dirty:               836 kB
AnonPages:        550628 kB
Mapped:            62248 kB
Shmem:              8872 kB
KReclaimable:     372220 kB
Slab:             371656 kB
SReclaimable:     329112 kB
SUnreclaim:        43708 kB
KernelStack:        3184 kB
PageTables:        19228 kB
HugePages_Total:       0
Hugepagesize:       2048 kB
`

export const sockstat = `sockets: used 190
TCP: inuse 130 orphan 2 tw 1417 alloc 154 mem 33
UDP: inuse 3 mem 1
UDPLITE: inuse 0
RAW: inuse 0
FRAG: inuse 0 memory 0
`

export const netstat = `TcpExt: SyncookiesSent SyncookiesRecv SyncookiesFailed EmbryonicRsts PruneCalled RcvPruned OfoPruned OutOfWindowIcmps LockDroppedIcmps ArpFilter TW TWRecycled TWKilled PAWSActive PAWSEstab BeyondWindow TSEcrRejected PAWSOldAck PAWSTimewait DelayedACKs DelayedACKLocked DelayedACKLost ListenOverflows ListenDrops TCPHPHits TCPPureAcks TCPHPAcks TCPRenoRecovery TCPSackRecovery TCPSACKReneging TCPSACKReorder TCPRenoReorder TCPTSReorder TCPFullUndo TCPPartialUndo TCPDSACKUndo TCPLossUndo TCPLostRetransmit TCPRenoFailures TCPSackFailures TCPLossFailures TCPFastRetrans TCPSlowStartRetrans TCPTimeouts
TcpExt: 0 0 0 0 85 0 0 0 0 0 571816 126809 0 0 1 0 0 90 848 872228 21 43151 12 15 26188941 2441323 43848522 0 14 0 8 0 1 2 1 11 0 0 0 0 0 22 0 46
IpExt: InNoRoutes InTruncatedPkts InMcastPkts OutMcastPkts InBcastPkts OutBcastPkts InOctets OutOctets InMcastOctets OutMcastOctets InBcastOctets OutBcastOctets InCsumErrors InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts ReasmOverlaps
IpExt: 0 0 0 0 0 0 33115316421 30643119407 0 0 0 0 0 74305731 0 0 0 0
`
