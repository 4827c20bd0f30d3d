/**
 * Where the snapshots come from. A source MUST look for its controller again by itself when that has gone, until it is closed, and MUST
 * NOT hold the process open after `close`. It MUST NOT throw at its listeners for anything that the other side does.
 *
 * @typedef {object} Source
 * @property {(listener: (snapshot: import('../schema.js').FleetSnapshot) => void) => void} onSnapshot each second
 * @property {(listener: (reason: string) => void) => void} [onLost] the controller has gone, and why, in a line; the next snapshot says
 *   that it is back
 * @property {(name: string, params: Record<string, any>) => Promise<any>} [command] asks the controller: `set` with
 *   `{n: 1000}`, `restart` with `{ids: ['d1']}`; without it the view only shows. Rejects with a line for people
 * @property {string} [name] path or so, for people
 * @property {() => void} close
 */

export {}
