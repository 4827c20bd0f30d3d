/** @import { Publication } from '../../../src/channels/broker/contract.js' */

/** @param {Partial<Publication>} [fields] @returns {Publication} */
export const makePublication = fields => ({
  data: Buffer.from('{"a":1}'),
  offset: 0,
  epoch: '',
  info: '',
  tags: null,
  version: 0n,
  json: true,
  delta: false,
  keyed: null,
  target: null,
  ...fields,
})
