// Messages and data of the fleet: the contract between drone, controller, providers, scenarios and reports. Points in
// time are Unix ms, durations ms, sizes bytes, shares 0 to 1, unless a name says otherwise.

/**
 * Two-way: websocket (Centrifuge JSON), http_stream and sse (with emulation), long_poll (docs/long-poll.md). One-way:
 * uni_*. Only in runs: protobuf (over WebSocket, without recovery), uni_bare (a WebSocket subscribed by its path,
 * `/?ch=CHANNEL`) and uni_socket_io.
 * @typedef {'websocket' | 'http_stream' | 'sse' | 'long_poll' | 'uni_websocket' | 'uni_http_stream' | 'uni_sse' |
 *   'protobuf' | 'uni_bare' | 'uni_socket_io'} Transport
 */

/**
 * Settings of the whole fleet; settings.js has the table with descriptions and defaults. Channels and `user` are
 * templates (channel-template.js). Connection i uses the (i mod length)th `host`. `publish_via`: `/api/batch`;
 * `/api/publish`; nchan's publisher; publish commands of a client.
 * @typedef {Record<'n' | 'concurrency' | 'rate' | 'churn' | 'backoff_min' | 'backoff_max' | 'publish_rate' |
 *   'publish_size' | 'publish_lanes' | 'publishers', number> & Record<'host' | 'publish_host' | 'addresses' | 'channels' |
 *   'publish_channels', string[]> & Record<'ports' | 'user', string> & Record<'recover' | 'publish_flat', boolean> &
 *   {transport: Transport, publish_order: 'random' | 'sequential', publish_via: 'api' | 'single' | 'nchan' | 'client'}}
 *   FleetSettings
 */

/**
 * Complete settings of a drone or of one of its processes: previous settings have no effect.
 * @typedef {Pick<FleetSettings, 'transport' | 'concurrency' | 'rate' | 'addresses' | 'ports' | 'channels' | 'recover' |
 *   'user' | 'churn'> & OwnSettings} Settings
 * @typedef {object} OwnSettings
 * @property {string[]} targets
 * @property {number} connections
 * @property {number} first number of its first connection: slot i is connection `first + i` of the fleet
 * @property {number} total maximum connections of the fleet, so far or at the end of a ramp
 * @property {{min: number, max: number}} backoff
 * @property {Publish | null} publish
 * @property {number} publishFrom start of publishing in the fleet; 0: no publishing. Older subscriptions detect
 *   a missing first message
 * @typedef {Record<'part' | 'parts' | 'rate' | 'size', number> & {via: FleetSettings['publish_via'], channels: string,
 *   order: FleetSettings['publish_order'], targets?: string[], flat?: boolean, lanes?: number}} Publish this publisher
 *   has channels part, part + parts ... of the template `channels`; `targets`: default those of the connections
 */

/**
 * A payload is JSON of exactly `publish_size` bytes. The numbers come first, so that a receiver finds them without
 * parsing: `t` intended time in Unix µs; `s` sequence in its channel; `c` channelNumber() of its channel; `e` start
 * number of the publisher; `m` machine number; `o` the gateway's clock minus the publisher's, µs; `p` padding.
 * @typedef {{t: number, s: number, c: number, e: number, m: number, o: number}} Payload
 */

/**
 * Durations in ms. Buckets, as index, count, index, count ..., are those of src/metrics/tick-histogram.js; `m2` is the
 * sum of the squares of the differences from the mean.
 * @typedef {Record<'count' | 'min' | 'max' | 'mean' | 'm2', number> & {buckets: number[]}} DistributionWire
 */

/**
 * Counts since the start of the drone (process, engine). Connections: `opened` with all subscriptions confirmed,
 * `reconnects` of these; `failed` attempts; `ended` unexpectedly; `closed` by the drone (fewer wanted, churn, cut).
 * Subscriptions: `refused` with an error, or ended by the server; `recovered`, `unrecovered`. Publications: `damaged`
 * with an incomplete payload; `disordered` after a later one; `gaps` in an unbroken or recovered subscription, with
 * `lost` publications, without late ones; `missed` while the connection was lost, without recovery. Messages:
 * `published` and confirmed by the target, or `unpublished`. Bytes count the application layer.
 * @typedef {Record<'opened' | 'failed' | 'ended' | 'closed' | 'reconnects' | 'refused' | 'pings' | 'received' |
 *   'damaged' | 'duplicates' | 'disordered' | 'gaps' | 'lost' | 'missed' | 'recovered' | 'unrecovered' | 'published' |
 *   'unpublished' | 'bytesIn' | 'bytesOut', number>} Counters
 * @typedef {Record<'wanted' | 'opening' | 'open', number>} Gauges connections; `open`: with all subscriptions confirmed
 */

/**
 * Sent once a second by an engine (one process) to its agent, and by an agent for the whole drone to its controller.
 * Each sample resets the distributions.
 * @typedef {object} EngineSample
 * @property {Gauges} gauges
 * @property {Counters} counters
 * @property {DistributionWire} latency from the intended send time to the arrival, all messages
 * @property {DistributionWire} probe the same, of messages published on this machine: one clock
 * @property {DistributionWire} connect from the start of an attempt to the ready connection
 * @property {DistributionWire} answer from the intended send time to the target's confirmation
 * @property {Record<string, number>} faults counts of at most 30 kinds (`ECONNREFUSED`, `3012 no pong`, `HTTP 503`): of
 *   an engine since its last sample, of a drone since its start
 * @property {Clock} clock
 * @typedef {{offset: number, error: number, against: 'gateway' | 'none'}} Clock the gateway's clock minus this
 *   machine's, and the maximum error, ms; `none`: the target does not send its time
 *   (`client.connect_include_server_time`)
 * @typedef {{role: 'agent' | 'connections' | 'publisher'} & Record<'pid' | 'connections' | 'cpu' | 'rss' | 'private' |
 *   'base', number>} DroneProcess `cpu`: ms; `private`: bytes without shared pages; `base`: the same before the first
 *   connection
 * @typedef {Record<'cores' | 'cpuBusy' | 'memory' | 'memoryFree' | 'netIn' | 'netOut' | 'tcpMemory' | 'sockets' |
 *   'timeWait', number>} DroneMachine since boot, or current; `cpuBusy`: ms of all cores; `netIn`: loopback counted
 *   once; `tcpMemory`: bytes of TCP sockets in the kernel (/proc/net/sockstat)
 * @typedef {EngineSample & { at: number, up: number, revision: number, exits: number, processes: DroneProcess[],
 *   machine: DroneMachine | null, }} DroneSample `up`: ms since the drone's start; `revision`: of the applied settings;
 *   `exits`: processes that exited unexpectedly
 */

/**
 * The last sequence of each channel of a publisher. Subscribers with a lower one have lost messages.
 * @typedef {{channels: string, part: number, parts: number, start: number, sequences: string}} Ledger `channels`: a
 *   template; `start`: the `e` of its payloads; `sequences`: base64 of the deflated Uint32Array (little-endian) of the
 *   last sequence of channel part, part + parts ...
 * @typedef {Record<'expected' | 'lost' | 'unknown', number>} Reconciliation `expected`: publications to all subscriptions;
 *   `lost`: missing at the end; `unknown`: subscriptions that began during publishing and received nothing
 */

/**
 * Launch configuration of a drone, in a file readable only by its user. Requests cannot change it.
 * @typedef {object} LaunchConfig
 * @property {string} id of the drone, `d1`
 * @property {string} run
 * @property {string} secret 64 hex digits: the TLS pre-shared key of the run
 * @property {string} [controller] host:port to dial
 * @property {string} [listen] host:port to listen on instead
 * @property {string} [status] host:port of its status port; default: none
 * @property {string[]} allow targets: `host:port` or `host`; it connects to nothing else
 * @property {string} [apiKey] of the target's server API, for publishers
 * @property {string} [tokenSecret] HMAC secret for the connections' tokens
 * @property {number} [perProcess] connections per process; default: its open-files limit, at most 18,000
 * @property {number} [orphanAfter] s without a controller until the drone stops its load; default 30
 * @property {number} [exitAfter] s without a controller until the drone exits; default 600; 0: never
 * @property {number} [hangAfter] s without a response until a process is killed and replaced; default 20
 */

/**
 * The control link: TLS with the run's secret as pre-shared key, one message per line of JSON.
 * @typedef {{type: 'hello', id: string, run: string, start: string, version: string, facts: DroneFacts}} Hello
 *   `start`: different for each start of the drone
 * @typedef {{type: 'sample', sample: DroneSample}} SampleMessage
 * @typedef {{type: 'event', level: 'info' | 'warn' | 'error', text: string}} EventMessage
 * @typedef {{type: 'answer', ask: number, result?: any, error?: string}} Answer
 * @typedef {{type: 'program', ask: number, id: string, run: string, sha256: string}} ProgramRequest instead of a
 *   hello, from a machine without a program (drone/bootstrap.js); the result is the archive (program.js) in base64
 * @typedef {Hello | SampleMessage | EventMessage | Answer | ProgramRequest} FromDrone
 * @typedef {{hostname: string, bootId: string, node: string, system: string, cores: number, memory: number,
 *   files: number, capacity: number, pid: number}} DroneFacts `files`: open-files limit of a process; `capacity`:
 *   connections that this drone can hold
 * @typedef {{type: 'settings', ask: number, revision: number, settings: Settings}} SettingsMessage result: `{}`; error: a
 *   target that is not allowed, an invalid template
 * @typedef {{type: 'cut', ask: number, share: number, how: 'close' | 'reset'}} CutMessage ends that share of the open
 *   connections, which reconnect. Result: `{cut: number}`
 * @typedef {{type: 'ledgers', ask: number}} LedgersMessage result: Ledger[]
 * @typedef {{type: 'reconcile', ask: number, ledgers: Ledger[]}} ReconcileMessage result: Reconciliation
 * @typedef {{type: 'restart', ask: number}} RestartMessage replaces all processes
 * @typedef {{type: 'stop', ask: number}} StopMessage closes all connections, replies, and exits with code 0
 * @typedef {SettingsMessage | CutMessage | LedgersMessage | ReconcileMessage | RestartMessage | StopMessage} ToDrone
 */

/**
 * The state of a drone at its status port, as JSON. Without a sample yet, only the first five.
 * @typedef {{id: string, run: string, version: string, state: 'starting' | 'up' | 'exiting', controller: 'connected' |
 *   'disconnected'} & Partial<Omit<DroneSample, keyof DroneStatistics> & {rates: Rates} & DroneStatistics>} DroneStatus
 * @typedef {Record<'latency' | 'probe' | 'connect' | 'answer', DistributionSummary>} DroneStatistics of the last second
 * @typedef {Record<'count' | 'mean' | 'deviation' | 'min' | 'p50' | 'p90' | 'p99' | 'max', number>} DistributionSummary ms
 */

/**
 * Sent once a second to the terminal view, `status --json` and the files of a run. `latency`: since the last
 * `resetStatistics`; `latencyNow`: of the last 5 s; `events`: the last 100.
 * @typedef {object} Snapshot
 * @property {number} time
 * @property {string} run
 * @property {string} provider
 * @property {FleetSettings} settings
 * @property {{from: number, to: number, began: number, ends: number} | null} ramp
 * @property {DroneRow[]} drones
 * @property {Gauges} gauges
 * @property {Counters} counters of all drones so far
 * @property {Rates} rates
 * @property {Record<string, number>} faults
 * @property {{time: number, level: string, text: string}[]} events
 * @property {number} [began] launch time of the run
 * @property {{name: string, step: string, began: number, ends: number} | null} [scenario] the current step
 * @typedef {Snapshot & Record<'latency' | 'latencyNow' | 'probe' | 'connect' | 'answer', DistributionWire>} FleetSnapshot
 * @typedef {Record<'opened' | 'failed' | 'ended' | 'received' | 'published' | 'bytesIn' | 'bytesOut', number>} Rates per
 *   second, over the last second
 * @typedef {object} DroneRow
 * @property {string} id
 * @property {string} where `local`, or the region
 * @property {string} handle pid or instance id
 * @property {'launching' | 'silent' | 'up' | 'restarting' | 'gone'} state `launching`: never connected; `silent`: no
 *   sample for 5 s
 * @property {DroneFacts | null} facts
 * @property {DroneSample | null} sample the last one, without its distributions
 * @property {Rates} rates
 * @property {number} p99 ms, latency in the last 5 s
 * @property {number} cpu share of a core, all its processes in the last second
 * @property {number} bytesPerConnection user-space memory of its processes above their base; 0: too few connections
 * @property {number} restarts
 */

/**
 * A machine or process launched by a provider. `where`: region, or `local`; `handle`: instance id or pid;
 * `state`: running, pending, stopping, gone; `address`: host of a listening drone; `note`: reason for `gone`, one line.
 * @typedef {{id: string, provider: string, where: string, handle: string, run: string, launched: number, state: string,
 *   address?: string, note?: string}} Handle
 */

export {}
