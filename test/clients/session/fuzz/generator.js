// Frames: valid, nearly valid, and invalid.

/** @import { Random } from './random.js' */

const words = (/** @type {string} */ text) => text.split(' ')

export const channels = [
  ...words('a b cc:x shut:x nope:x $p ä a#u : quiet:x __proto__ constructor'),
  ...['', 'x'.repeat(300), '\u0000', '\ud800', 'cc:"\\\n'],
]
export const texts = [
  ...words('x 0 fossil null __proto__ é a.b.c eyJhbGciOiJub25lIn0.e30.'),
  ...['', '\u2028', '\ud83d\ude00', '\ud800', 'y'.repeat(2000)],
]
const numbers = [0, 1, -1, 2, 5, 300, 301, 1.5, -0, 4294967295, 4294967296, 2 ** 53, 1e30, -1e30]

/** @param {Random} random @returns {any} any JSON value */
export function anything(random, depth = 0) {
  switch (random.below(depth > 3 ? 5 : 8)) {
    case 0:
      return random.pick(numbers)
    case 1:
      return random.pick(texts)
    case 2:
      return random.pick([true, false])
    case 3:
      return null
    case 4:
      return random.pick([[], {}, [[]], { '': {} }])
    case 5:
      return Array.from({ length: random.below(4) }, () => anything(random, depth + 1))
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(4) }, () => [
          random.pick([...texts, 'channel', 'data', 'id']),
          anything(random, depth + 1),
        ]),
      )
  }
}

/** @param {Random} random @returns {any} */
function filter(random, depth = 0) {
  if (depth > 3 || random.chance(0.6)) {
    const cmp = random.pick([...words('eq neq in nin ex nex sw ew ct gt gte lt lte like'), ''])
    return {
      key: random.pick(['k', '', '__proto__']),
      cmp,
      [random.pick(['val', 'vals', 'value'])]: random.chance(0.5) ? 'x' : ['x', 'y'],
    }
  }
  const nodes = Array.from({ length: random.below(3) }, () => filter(random, depth + 1))
  return { op: random.pick(['and', 'or', 'not', 'xor']), nodes }
}

/** @type {Record<string, (random: Random) => any>} likely values of fields */
const fields = {
  channel: random => random.pick(channels),
  token: random => random.pick(texts),
  recover: random => random.chance(0.5),
  epoch: random => random.pick(['', 'abcdefgh', 'x']),
  offset: random => random.pick([0, 1, 5, 1000, 2 ** 40]),
  data: random => anything(random),
  positioned: random => random.chance(0.5),
  recoverable: random => random.chance(0.5),
  join_leave: random => random.chance(0.5),
  delta: random => random.pick(['', 'fossil', 'xdelta']),
  tf: random => filter(random),
  flag: random => random.pick([0, 1, 2, 3, -1]),
  type: random => random.pick([0, 0, 0, 1, 4]),
  limit: random => random.pick([0, 1, -1, 300, 301]),
  since: random => random.pick([{}, { offset: 1 }, { offset: 1, epoch: 'x' }, null]),
  reverse: random => random.chance(0.5),
  method: random => random.pick(texts),
  name: random => random.pick(texts),
  version: random => random.pick(texts),
  headers: random => random.pick([{}, { a: 'b' }, { __proto__: 'x' }, { '': '' }]),
  subs: random =>
    Object.fromEntries(
      Array.from({ length: random.below(4) }, () => [random.pick(channels), request(random, 'subscribe')]),
    ),
}

/** @type {Record<string, string[]>} */
const methods = {
  connect: words('token data subs name version headers flag'),
  subscribe: words(
    'channel token recover epoch offset data positioned recoverable join_leave delta tf flag type',
  ),
  unsubscribe: ['channel'],
  publish: ['channel', 'data'],
  presence: ['channel'],
  presence_stats: ['channel'],
  history: words('channel limit since reverse'),
  rpc: ['method', 'data'],
  send: ['data'],
  refresh: ['token'],
  sub_refresh: words('channel token type'),
  ping: [],
  fly: ['channel'],
}

const all = Object.keys(methods)
const lasting = all.filter(method => !['connect', 'send', 'refresh', 'ping', 'fly'].includes(method))

/** Those that leave a connection open come more often. @param {Random} random */
const anyMethod = random => random.pick(random.chance(0.04) ? all : lasting)

/** @param {Random} random @param {string} method */
function request(random, method) {
  if (random.chance(0.01)) return anything(random)
  /** @type {any} */
  const made = {}
  for (const field of methods[method]) {
    // Without its channel, a command fails early.
    if (!random.chance(field === 'channel' ? 0.97 : 0.5)) continue
    made[field] = random.chance(0.02) ? anything(random) : fields[field](random)
    if (field === 'channel' && made.channel === '' && random.chance(0.8)) made.channel = 'a'
  }
  if (random.chance(0.05)) made[random.pick(texts)] = anything(random)
  return made
}

/** @param {Random} random @param {number} id @param {string} [method] */
function command(random, id, method = anyMethod(random)) {
  /** @type {any} */
  const made = { id, [method]: request(random, method) }
  if (random.chance(0.02)) made.id = random.pick([...numbers, '1', null, true])
  if (random.chance(0.03)) {
    const other = anyMethod(random)
    made[other] = request(random, other)
  }
  if (random.chance(0.02)) made[random.pick(texts)] = anything(random)
  return made
}

const separators = ['\n', '\r\n', ...words('{ } " , : [ ] \\ {} null'), ' ', '\n\n']

/** @param {Random} random @param {Buffer} frame */
export function mutate(random, frame) {
  const at = random.below(frame.length + 1)
  const length = random.below(8)
  const [start, end] = [frame.subarray(0, at), frame.subarray(at)]
  const joined = (/** @type {(Buffer | number[] | string)[]} */ ...parts) =>
    Buffer.concat(parts.map(part => Buffer.from(/** @type {any} */ (part))))
  switch (random.below(7)) {
    case 0:
      return start
    case 1:
      return joined(start, end.subarray(length))
    case 2:
      return joined(start, random.pick(separators), end)
    case 3: {
      const bytes = Array.from({ length }, () => random.below(256))
      return joined(start, bytes, end)
    }
    case 4: {
      const copy = Buffer.from(frame)
      if (copy.length > 0) copy[at % copy.length] ^= 1 << random.below(8)
      return copy
    }
    case 5:
      return joined(frame, end)
    default:
      return joined(end, start)
  }
}

/** @param {Random} random @param {boolean} connected @returns {Buffer} one frame */
export function generateFrame(random, connected) {
  const lines = Array.from({ length: 1 + (random.chance(0.3) ? random.below(30) : 0) }, (_, i) => {
    const method = !connected && i === 0 && random.chance(0.9) ? 'connect' : undefined
    return JSON.stringify(command(random, i + 1, method))
  })
  /** @type {Buffer} */
  let frame = Buffer.from(lines.join(random.chance(0.95) ? '\n' : '\r\n') + (random.chance(0.1) ? '\n' : ''))
  for (let n = random.chance(0.25) ? 1 + random.below(3) : 0; n > 0; n--) frame = mutate(random, frame)
  return frame
}
