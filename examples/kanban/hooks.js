// The backend of the board: it checks cards and writes them with compare-and-set. Each worker of the gateway loads this
// file.

import { defineHooks, reject } from 'halley-gateway/hooks'

const BOARD = 'board:1'
const COLUMNS = ['todo', 'doing', 'done']

/** The methods of the server API. @type {import('halley-gateway/api').ServerApi} */
let gateway

const isText = (value, limit) => typeof value === 'string' && value.trim() !== '' && value.length <= limit

/** @returns {{text: string, column: string, by: string}} @throws {Error} the refusal for the client */
function checked({ text, column, by }) {
  if (!isText(text, 500)) throw reject(4000, 'a card has 1 to 500 characters')
  if (!COLUMNS.includes(column)) throw reject(4001, 'there is no such column')
  // A real program would take the name from the session of the user.
  if (!isText(by, 24)) throw reject(4002, 'a name has 1 to 24 characters')
  return { text: text.trim(), column, by }
}

export default defineHooks({
  started(api) {
    gateway = api
  },

  rpc: {
    /**
     * Writes a card if it has not changed since the client read it at `offset`; 0: if there is none.
     * Returns `{ offset, epoch }`, or `{ suppressed: true, suppressReason: 'position_mismatch', current }`.
     */
    put({ data }) {
      const { key, card, offset, epoch } = data
      if (!isText(key, 64) || !Number.isSafeInteger(offset) || !isText(epoch, 64))
        throw reject(4003, 'a write has a key, an offset and an epoch')
      return gateway.maps.publish(BOARD, key, checked(card ?? {}), {
        expectedOffset: offset,
        expectedEpoch: epoch,
      })
    },
  },
})
