// Messages and data of the fleet: the contract between drone, controller, providers, scenarios and reports. Points in
// time are Unix ms, durations ms, sizes bytes, shares 0 to 1, unless a name says otherwise.

/**
 * Transport of a drone's connections. Two-way: websocket (Centrifuge JSON), http_stream and sse (with emulation),
 * long_poll (Halley's docs/long-poll.md). One-way: uni_websocket, uni_http_stream, uni_sse.
 * Of a run: protobuf (Centrifuge Protobuf over WebSocket, without recovery), and for other servers uni_bare (a
 * WebSocket that its path subscribes, `/?ch=CHANNEL`) and uni_socket_io.
 * @typedef {'websocket' | 'http_stream' | 'sse' | 'long_poll' | 'uni_websocket' | 'uni_http_stream' | 'uni_sse' |
 *   'protobuf' | 'uni_bare' | 'uni_socket_io'} Transport
 */

/**
 * Settings of the whole fleet; settings.js has the table with descriptions and defaults.
 * @typedef {object} FleetSettings
 * @property {string[]} host base URLs of the target, `http://127.0.0.1:8000`; connection i goes to the (i mod
 *   length)th
 * @property {string[]} publish_host base URLs for publishing; empty: those of `host`
 * @property {Transport} transport
 * @property {number} n connections of all drones
 * @property {number} concurrency maximum connections that one drone opens at once
 * @property {number} rate maximum connections that all drones open per second; 0: bounded by concurrency only
 * @property {string[]} addresses ranges of local addresses to connect from, `127.0.1.1-127.0.1.50`; empty: the
 *   kernel's choice
 * @property {string} ports range of sequential source ports on each of the addresses, `1024-65535`; '': the kernel's
 *   choice
 * @property {string[]} channels templates (see channel-template.js) that each connection subscribes to, one
 *   subscription each
 * @property {boolean} recover subscriptions are recoverable, and recovered after a connection was lost
 * @property {string} user channel template of the user id in the connection's token; '': no token
 * @property {number} churn connections of all drones that are closed and reopened per second
 * @property {number} backoff_min ms before a lost connection is reopened; doubles with jitter
 * @property {number} backoff_max ms
 * @property {number} publish_rate messages of all publishers per second; 0: no publishing
 * @property {number} publish_size bytes of a payload
 * @property {string[]} publish_channels templates with a range, `s{1..1200000}`; several are shared out among
 *   the publishers, as many publishers and messages to each
 * @property {'random' | 'sequential'} publish_order of the channels
 * @property {'api' | 'single' | 'nchan' | 'client'} publish_via in batches over the server API (`/api/batch`), each
 *   message in a request of its own (`/api/publish`; nchan's publisher), or as a client's publish commands
 * @property {boolean} publish_flat the next message as soon as one is confirmed, whatever the rate
 * @property {number} publish_lanes requests that a publisher has under way at once; 0: 4 batches, or 32 single ones
 * @property {number} publishers maximum drones that publish: the first ones of the fleet
 */

/**
 * What one drone (or, cut down by its agent, one of its processes) is to do. Always the whole of it: a drone makes its
 * state like this, whatever it was before.
 * @typedef {object} Settings
 * @property {string[]} targets
 * @property {Transport} transport
 * @property {number} connections that this drone holds
 * @property {number} first number of its first connection: connection `first + slot` of the fleet, counted from 0.
 *   Stays the same, so that a channel that is "own" stays one's own, until the drones change, or more connections are
 *   wanted than before
 * @property {number} total connections of the whole fleet that their numbers are laid out for: the most that were
 *   wanted, or, while they are ramped up, will be
 * @property {number} concurrency
 * @property {number} rate 0: no bound
 * @property {string[]} addresses
 * @property {string} ports
 * @property {string[]} channels
 * @property {boolean} recover
 * @property {string} user
 * @property {number} churn
 * @property {{min: number, max: number}} backoff
 * @property {Publish | null} publish
 * @property {number} publishFrom when the publishers of the fleet begin; 0: nobody publishes. A subscription that was
 *   there before misses a message that never came; one that came later cannot know
 * @typedef {object} Publish
 * @property {FleetSettings['publish_via']} via
 * @property {string} channels channel template
 * @property {'random' | 'sequential'} order
 * @property {number} rate of this drone
 * @property {number} size
 * @property {number} part this publisher has the channels whose index mod `parts` is `part`: each channel has one
 *   publisher, and its messages one sequence from 1
 * @property {number} parts
 * @property {string[]} [targets] see `publish_host`
 * @property {boolean} [flat] see `publish_flat`
 * @property {number} [lanes] see `publish_lanes`
 */

/**
 * A payload is JSON of exactly `publish_size` bytes. The numbers come first, so that a receiver finds them without
 * parsing the whole: `t` µs, Unix, intended time; `s` sequence in its channel; `c` channelNumber() of its channel; `e`
 * number of the publisher's start; `m` machine number; `o` µs that the publisher's clock is behind the gateway's; `p`
 * padding.
 * @typedef {{t: number, s: number, c: number, e: number, m: number, o: number}} Payload
 */

/**
 * A distribution of durations on the wire. Buckets are those of src/metrics/tick-histogram.js (bucketOf, waitOf); `m2`
 * is the sum of the squares of the differences from the mean (Welford), which is merged by Chan's formula.
 * @typedef {object} DistributionWire
 * @property {number} count
 * @property {number} min ms
 * @property {number} max ms
 * @property {number} mean ms
 * @property {number} m2 ms²
 * @property {number[]} buckets index, count, index, count ...
 */

/**
 * Counted since the drone (its process, its engine) began; never falls while it lives.
 * @typedef {object} Counters
 * @property {number} opened connections that were established: connected and all subscriptions answered
 * @property {number} failed attempts to open one that did not succeed
 * @property {number} ended connections that ended unexpectedly
 * @property {number} closed connections that were closed here: fewer wanted, churn, cut
 * @property {number} reconnects of `opened`, those that were there before
 * @property {number} refused subscriptions that were answered with an error, or ended by the server
 * @property {number} pings from the server
 * @property {number} received publications
 * @property {number} damaged publications with an incomplete payload
 * @property {number} duplicates publications that came before, on this subscription
 * @property {number} disordered publications that came after a later one, and not before
 * @property {number} gaps places where publications are missing in an unbroken or recovered subscription
 * @property {number} lost publications missing in those places (late ones are taken off again)
 * @property {number} missed publications during an absence without recovery
 * @property {number} recovered subscriptions that the server recovered
 * @property {number} unrecovered subscriptions that the server could not recover
 * @property {number} published messages that the target confirmed
 * @property {number} unpublished messages that it did not confirm
 * @property {number} bytesIn of the application's layer
 * @property {number} bytesOut
 */

/**
 * @typedef {object} Gauges
 * @property {number} wanted connections
 * @property {number} opening
 * @property {number} open ready to receive: connected and all subscriptions answered
 */

/**
 * What an engine (one process) tells its agent, and an agent of the whole drone its controller, once a second.
 * Distributions are those since the last sample.
 * @typedef {object} EngineSample
 * @property {Gauges} gauges
 * @property {Counters} counters
 * @property {DistributionWire} latency from the intended time of sending to here, all messages
 * @property {DistributionWire} probe the same, of messages published on this machine: no clocks to compare
 * @property {DistributionWire} connect from the beginning of an attempt to the connection being ready
 * @property {DistributionWire} answer from the intended time of publishing to the target's confirmation
 * @property {Record<string, number>} faults counted by what they are (`ECONNREFUSED`, `3012 no pong`, `HTTP 503`); at
 *   most 30 kinds. An engine's are those since its last sample, a drone's those since it began
 * @property {Clock} clock
 * @typedef {object} Clock this machine's clock against the gateway's
 * @property {number} offset ms to add to this clock
 * @property {number} error ms that the offset may be off
 * @property {'gateway' | 'none'} against `none`: the target does not send its time
 *   (`client.connect_include_server_time`)
 * @typedef {object} DroneProcess
 * @property {number} pid
 * @property {'agent' | 'connections' | 'publisher'} role
 * @property {number} connections
 * @property {number} cpu ms of processor time since the process began
 * @property {number} rss bytes
 * @property {number} private bytes that this process alone uses (Pss of /proc/PID/smaps_rollup where there is one)
 * @property {number} base `private` before its first connection
 * @typedef {object} DroneMachine of the drone's machine, since it booted or now
 * @property {number} cores
 * @property {number} cpuBusy ms of all cores that were not idle
 * @property {number} memory bytes
 * @property {number} memoryFree bytes that are available
 * @property {number} netIn bytes, loopback counted once
 * @property {number} netOut bytes
 * @property {number} tcpMemory bytes that the kernel has for TCP sockets (/proc/net/sockstat)
 * @property {number} sockets TCP sockets in use
 * @property {number} timeWait
 * @typedef {EngineSample & { at: number, up: number, revision: number, deaths: number, processes: DroneProcess[],
 *   machine: DroneMachine | null, }} DroneSample `up`: ms since the drone began; `revision`: of the settings that
 *   hold; `deaths`: own processes that died
 */

/**
 * The last sequence of each channel of a publisher. A subscriber that has less has lost the rest.
 * @typedef {object} Ledger
 * @property {string} channels channel template
 * @property {number} part
 * @property {number} parts
 * @property {number} start number of the publisher's start, the `e` of its payloads
 * @property {string} sequences base64 of the deflated Uint32Array (little-endian) of the last sequence of channel
 *   part, part + parts ...
 * @typedef {object} Reckoning of all subscriptions with the ledgers
 * @property {number} expected publications that all subscriptions together should have
 * @property {number} lost missing at the end; those in gaps were counted before
 * @property {number} unknown subscriptions without a verdict: they began during publishing and received nothing
 */

/**
 * Launch configuration of a drone, in a file that only its user may read. No request can change it.
 * @typedef {object} LaunchConfig
 * @property {string} id of the drone, `d1`
 * @property {string} run
 * @property {string} secret 64 hex digits: the TLS pre-shared key of the run
 * @property {string} [controller] host:port to dial
 * @property {string} [listen] host:port to be dialled at instead
 * @property {string[]} allow targets: `host:port` or `host`; it connects to nothing else
 * @property {string} [apiKey] of the target's server API, for publishers
 * @property {string} [tokenSecret] HMAC secret for the connections' tokens
 * @property {number} [perProcess] connections that one process holds; default: what a process may open, 18,000 at most
 * @property {number} [orphanAfter] s without a controller after which the drone stops loading; default 30
 * @property {number} [exitAfter] s without a controller after which it ends; default 600; 0: never
 * @property {number} [hangAfter] s without an answer after which one of its processes is ended by force and replaced;
 *   default 20
 */

/**
 * The control link: TLS with the run's secret as pre-shared key, in it lines of JSON, one message each.
 * @typedef {{type: 'hello', id: string, run: string, start: string, version: string, facts: DroneFacts}} Hello
 *   `start`: another one for each start of the drone
 * @typedef {{type: 'sample', sample: DroneSample}} SampleMessage
 * @typedef {{type: 'event', level: 'info' | 'warn' | 'error', text: string}} EventMessage
 * @typedef {{type: 'answer', ask: number, result?: any, error?: string}} Answer
 * @typedef {{type: 'program', ask: number, id: string, run: string, sha256: string}} ProgramRequest instead of a
 *   hello, by a machine that has no drone yet (drone/bootstrap.js); answered with the base64 of the archive
 *   (program.js), or an error
 * @typedef {Hello | SampleMessage | EventMessage | Answer | ProgramRequest} FromDrone
 * @typedef {object} DroneFacts
 * @property {string} hostname
 * @property {string} bootId
 * @property {string} node version
 * @property {string} system `Linux 6.1.0 x64`
 * @property {number} cores
 * @property {number} memory bytes
 * @property {number} files that a process may open
 * @property {number} capacity connections that this drone can hold
 * @property {number} pid
 * @typedef {{type: 'settings', ask: number, revision: number, settings: Settings}} SettingsMessage answered with `{}`
 *   or an error: a target that is not allowed, a template that cannot be read
 * @typedef {{type: 'cut', ask: number, share: number, how: 'close' | 'reset'}} CutMessage ends that share of the open
 *   connections as if the network had; they are opened again. Answered with `{cut: number}`
 * @typedef {{type: 'ledgers', ask: number}} LedgersMessage answered with Ledger[]
 * @typedef {{type: 'reckon', ask: number, ledgers: Ledger[]}} ReckonMessage answered with a Reckoning
 * @typedef {{type: 'restart', ask: number}} RestartMessage all its processes anew
 * @typedef {{type: 'stop', ask: number}} StopMessage closes all, answers, and ends with exit code 0
 * @typedef {SettingsMessage | CutMessage | LedgersMessage | ReckonMessage | RestartMessage | StopMessage} ToDrone
 */

/**
 * Sent once a second to the terminal view, `status --json` and the runs' files.
 * @typedef {object} FleetSnapshot
 * @property {number} time
 * @property {string} run
 * @property {string} provider
 * @property {FleetSettings} settings
 * @property {{from: number, to: number, began: number, ends: number} | null} ramp
 * @property {DroneRow[]} drones
 * @property {Gauges} gauges of all
 * @property {Counters} counters of all drones that were ever there
 * @property {Rates} rates
 * @property {Record<string, number>} faults
 * @property {DistributionWire} latency since the last `resetStatistics`
 * @property {DistributionWire} latencyNow of the last 5 s
 * @property {DistributionWire} probe
 * @property {DistributionWire} connect
 * @property {DistributionWire} answer
 * @property {{time: number, level: string, text: string}[]} events the last 100
 * @property {number} [began] when the run was launched
 * @property {{name: string, step: string, began: number, ends: number} | null} [scenario] the current run, its step
 *   and its time
 * @typedef {object} Rates a second, over the last second
 * @property {number} opened
 * @property {number} failed
 * @property {number} ended
 * @property {number} received
 * @property {number} published
 * @property {number} bytesIn
 * @property {number} bytesOut
 * @typedef {object} DroneRow
 * @property {string} id
 * @property {string} where `local`, or the region
 * @property {string} handle pid or instance id
 * @property {'launching' | 'silent' | 'up' | 'restarting' | 'gone'} state `launching`: never connected; `silent`: no
 *   sample for 5 s
 * @property {DroneFacts | null} facts
 * @property {DroneSample | null} sample the last one, without its distributions
 * @property {Rates} rates
 * @property {number} p99 ms, latency of its last 5 s
 * @property {number} cpu share of a core that all its processes took in the last second
 * @property {number} bytesPerConnection user-space memory of its processes beyond their base, for each open
 *   connection; 0: too few to measure
 * @property {number} restarts
 */

/**
 * A machine or process that a provider has launched.
 * @typedef {object} Handle
 * @property {string} id of the drone
 * @property {string} provider
 * @property {string} where region, or `local`
 * @property {string} handle instance id or pid
 * @property {string} run
 * @property {number} launched
 * @property {string} state `running`, `pending`, `stopping`, `gone`
 * @property {string} [address] host of a listening drone
 * @property {string} [note] why it is gone, one line
 */

export {}
