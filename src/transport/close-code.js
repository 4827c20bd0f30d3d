/** What a WebSocket client says that has nothing to complain of. */
const NORMAL = 1000
/** The last one that the WebSocket protocol itself gives a meaning. */
const LAST = 1015

/**
 * How a WebSocket has ended that the client has closed. Codes above those of the protocol are the gateway's own: a client may say any of
 * them, which must not pass for ours, nor fill counts with names that it invents.
 * @param {number} code
 * @returns {number}
 */
export const closeCode = code => (code >= NORMAL && code <= LAST ? code : NORMAL)
