// A second, simple implementation of the client protocol: framing, connect and commands.

/** @param {any} value */
const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)

/** @type {Record<string, (value: any) => boolean>} */
const types = {
  string: value => typeof value === 'string',
  bool: value => typeof value === 'boolean',
  int: value => Number.isInteger(value),
  uint: value => Number.isInteger(value) && value >= 0,
  any: () => true,
  strings: value => Array.isArray(value) && value.every(types.string),
  texts: value => isObject(value) && Object.values(value).every(types.string),
  position: value => fits(value, shape('uint: offset, string: epoch')),
  filter: value => fits(value, shape('string: op key cmp val, strings: vals, filters: nodes')),
  filters: value => Array.isArray(value) && value.every(types.filter),
  subs: value =>
    isObject(value) && Object.values(value).every(sub => sub === null || fits(sub, requests.subscribe)),
}

/** @param {string} text `type: field field, type: field` @returns {Record<string, string>} field -> type */
function shape(text) {
  const groups = text.split(', ').map(group => group.split(/:? /))
  return Object.fromEntries(groups.flatMap(([type, ...fields]) => fields.map(field => [field, type])))
}

/** @type {Record<string, Record<string, string>>} fields of each method; of several methods, the first one counts */
const requests = {
  connect: shape('string: token name version, any: data, subs: subs, texts: headers, int: flag'),
  subscribe: shape(
    'string: channel token epoch delta cursor, bool: recover positioned recoverable join_leave asc, uint: offset, ' +
      'any: data, filter: tf, int: flag type phase limit',
  ),
  unsubscribe: shape('string: channel'),
  publish: shape('string: channel key, any: data, int: type, bool: removed'),
  presence: shape('string: channel'),
  presence_stats: shape('string: channel'),
  history: shape('string: channel, int: limit, position: since, bool: reverse'),
  rpc: shape('any: data, string: method'),
  send: shape('any: data'),
  refresh: shape('string: token'),
  sub_refresh: shape('string: channel token, int: type'),
}

/** @type {Record<string, number[]>} the errors of each command, for a client whose tokens are never right */
const errorsOf = {
  subscribe: [102, 103, 105, 106, 107, 108, 112],
  unsubscribe: [],
  publish: [102, 103, 107],
  presence: [102, 103, 107, 108],
  presence_stats: [102, 103, 107, 108],
  history: [102, 103, 107, 108, 112],
  rpc: [108],
  sub_refresh: [103, 107],
}

/** @param {any} value @param {Record<string, string>} shape */
function fits(value, shape) {
  if (!isObject(value)) return false
  return Object.entries(shape).every(([name, type]) => {
    const field = Object.hasOwn(value, name) ? value[name] : null
    return field === null || types[type](field)
  })
}

/** @param {string} line @returns {any} its first JSON value if that is an object, else undefined */
function firstObject(line) {
  for (let end = line.length; end > 0; end = line.lastIndexOf('}', end - 1)) {
    if (end < 0) break
    for (const text of [line.slice(0, end), line.slice(0, end + 1)]) {
      try {
        const value = JSON.parse(text)
        return isObject(value) ? value : undefined
      } catch {}
    }
  }
  return undefined
}

/** @param {string} channel whether its namespace is none of the gateway's */
function isUnknown(channel) {
  const name = channel.startsWith('$') ? channel.slice(1) : channel
  const end = name.indexOf(':')
  return end > 0 && !['cc', 'shut', 'quiet'].includes(name.slice(0, end))
}

/**
 * @typedef {object} Expected
 * @property {number} [id] of a reply
 * @property {string} [method] of its result
 * @property {number[]} [errors] codes that it may have instead
 * @property {number[]} [close] codes of a close that may follow instead
 * @property {boolean} [maybe] whether the close is optional
 */

/** @param {...number} close @returns {Expected} */
const closing = (...close) => ({ close })

/** @param {string} line @param {boolean} connected @returns {Expected} */
function expectation(line, connected) {
  const value = firstObject(line)
  if (value === undefined) return closing(3501)
  const id = value.id ?? 0
  if (!Number.isInteger(id) || id < 0 || id > 0xffffffff) return closing(3501)
  const own = Object.keys(requests).filter(name => Object.hasOwn(value, name) && value[name] !== null)
  if (own.some(name => !fits(value[name], requests[name]))) return closing(3501)
  const [method] = own
  // No pings are sent, so every pong is an error.
  if (method === undefined) return closing(3501)
  const { channel, token, subs, delta } = value[method]
  const pinged = Object.hasOwn(value, 'ping') && value.ping !== null
  if (connected === (method === 'connect') || (id === 0 && method !== 'send')) return closing(3501)
  if (pinged) return { id, errors: [108], close: [3501, 3508], maybe: true }
  if (method === 'connect') {
    if (token) return closing(3500)
    const wishes = Object.entries(subs ?? {}).filter(([, wish]) => wish !== null)
    if (Object.hasOwn(subs ?? {}, '') || wishes.some(([name]) => isUnknown(name))) return closing(3501)
    if (wishes.some(([, { delta }]) => delta && delta !== 'fossil')) return closing(3501)
    return { id, method, errors: [] }
  }
  if (method === 'send') return closing(3508)
  if (method === 'refresh') return closing(token ? 3500 : 3501)
  if (method !== 'rpc' && !channel) return closing(3501)
  const errors = errorsOf[method]
  if (method === 'subscribe' && delta && delta !== 'fossil')
    return { id, errors: [102, 107], close: [3501], maybe: true }
  if (method === 'sub_refresh' && token) return { id, errors, close: [3500], maybe: true }
  return { id, method, errors }
}

/**
 * @param {Buffer} frame @param {boolean} connected
 * @returns {Expected[]} in order; nothing comes behind a close that is certain
 */
export function expectations(frame, connected) {
  const text = frame.toString()
  const lines = text.endsWith('\n') ? text.slice(0, -1).split('\n') : text.split('\n')
  /** @type {Expected[]} */
  const expected = []
  for (const line of lines) {
    const next = expectation(line, connected)
    expected.push(next)
    if (next.close && !next.maybe) break
    if (next.method === 'connect') connected = true
  }
  return expected
}

/**
 * @param {Expected[]} expected @param {any[]} replies @param {number | undefined} code of the close, if there was one
 * @returns {string} what is wrong, '' if nothing is
 */
export function judge(expected, replies, code) {
  let at = 0
  for (const { id, method, errors = [], close = [], maybe } of expected) {
    const reply = replies[at]
    const ended = reply === undefined && code !== undefined && close.includes(code)
    if (ended) return ''
    if (close.length > 0 && !maybe) return `close ${close} expected, not ${JSON.stringify(reply)} or ${code}`
    if (reply === undefined)
      return `a reply to ${method} ${id} is missing, the connection is ${code ?? 'open'}`
    if (reply.id !== id) return `a reply to ${id} expected, not ${JSON.stringify(reply)}`
    const [, field] = Object.keys(reply)
    const right = field === 'error' ? errors.includes(reply.error.code) : field === method
    if (!right || Object.keys(reply).length !== 2) return `not a reply to ${method}: ${JSON.stringify(reply)}`
    at++
  }
  if (at < replies.length) return `too many replies: ${JSON.stringify(replies.slice(at))}`
  return code === undefined ? '' : `closed with ${code}`
}
