/**
 * Where the figures come from. An implementation MUST connect again for ever after `start`, MUST tell a change of its link
 * before what came over it, MUST answer each command by a `done` message, its own if need be, and MUST NOT hold the process
 * open after `close`. It MUST NOT throw at its listener for anything that the other side does.
 *
 * @typedef {object} Source
 * @property {string} name path or URL, for people
 * @property {(listener: (event: SourceEvent) => void) => void} start
 * @property {(command: import('../../src/stats/schema.js').StatsCommand) => void} send
 * @property {() => void} close
 *
 * @typedef {{type: 'message', message: import('../../src/stats/schema.js').StatsMessage}
 *   | {type: 'link', state: LinkState, text: string}} SourceEvent `text`: why it is lost or refused, one line
 *
 * @typedef {'connecting' | 'open' | 'lost' | 'refused'} LinkState open: a hello has come; refused: trying again may help, but
 *   somebody should do something (another key, a newer dashboard)
 */

/** ms until the first try again, and at most; it doubles in between. */
export const RETRY = Object.freeze({ first: 250, most: 5000, refused: 30_000 })
