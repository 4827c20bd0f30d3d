// Denials: users and tokens that are refused before their tokens expire. A call of the server API takes this way:
//
//   worker -- DENY --> primary: a store keeps it, in the journal or in Redis
//                      primary -- DENIED --> all workers of this node
//   worker <- answer -- primary
//   worker -- order `denied` --> all workers of all nodes: they have applied it when the call is answered
//
// The primary sends the whole list to a new worker, which listens when it has it. With a store in Redis, the primary of
// each node loads it before its workers start, and then reads the changes of others.

/** @import { KINDS } from '../denylist.js' */

/**
 * @typedef {(typeof KINDS)[number]} Kind
 *
 * A change of the list. `key`: user, or `jti` of a token; `channel`: of `user_tokens_invalidate`, '' = all tokens of the
 * user; `seq`: of the store, which orders the changes of a key; `expireAt`: unix s, 0 = never; `issuedBefore`: unix s,
 * of `user_tokens_invalidate`; `removed`: the user is no longer blocked.
 * @typedef {{kind: Kind, key: string, channel: string, seq: number, expireAt: number, issuedBefore: number,
 *   removed: boolean}} Denial
 *
 * @typedef {Pick<Denial, 'seq' | 'expireAt' | 'issuedBefore' | 'removed'>} Entry
 *
 * `jti` ('' = none) and `iat` (unix s, 0 = none) of a token.
 * @typedef {{readonly uid: string, readonly issuedAt: number}} TokenStamp
 *
 * Where denials are kept. It MUST keep a change before `change` resolves, or reject with a ReplyError: errors.limitExceeded
 * (too many entries), errors.internal (it is not known whether the change is kept).
 * @typedef {object} DenialStore
 * @property {() => Promise<void>} open loads the entries, before workers start. Throws an error with a one-line message
 * @property {(denial: Denial) => Promise<Denial>} change returns it with its `seq` and the values in force
 * @property {() => Promise<void>} close
 *
 * `list`: the node's, already opened; `limits`: `max_entries`; `apply`: of changes that are kept.
 * @typedef {{limits: Record<Kind, number>, apply: (denials: Denial[]) => void,
 *   log: import('pino').Logger}} StoreParts
 *
 * Denials in a worker. `loaded`: it has the list; `change`: keeps a change; `apply`: of another worker.
 * @typedef {{loaded: Promise<void>, change: (denial: Denial) => Promise<Denial>,
 *   apply: (denials: Denial[]) => void}} Denials
 */

export {}
