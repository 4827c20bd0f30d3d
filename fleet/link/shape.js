// Shapes of external values. A shape checks a value and throws an error of one line: the field, its value, and what it
// must be.

/** @typedef {(value: any, field: string) => void} Shape */

/** Characters of a wrong value that an error shows. */
const SHOWN = 60

/** @param {any} value */
function show(value) {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}...` : text
}

/** @param {(value: any) => boolean} fits @param {string} must what a value must be @returns {Shape} */
export const shape = (fits, must) => (value, field) => {
  if (value === undefined) throw new Error(`${field} is missing: it must be ${must}`)
  if (!fits(value)) throw new Error(`${field} is ${show(value)}: it must be ${must}`)
}

/** @param {number} [most] letters @param {number} [least] */
export const text = (most = 1000, least = 0) =>
  shape(
    value => typeof value === 'string' && value.length >= least && value.length <= most,
    least > 0 ? `text of ${least} to ${most} letters` : `text of at most ${most} letters`,
  )

/** @param {RegExp} pattern @param {string} must */
export const matching = (pattern, must) =>
  shape(value => typeof value === 'string' && pattern.test(value), must)

/** @param {...string} words */
export const oneOf = (...words) => shape(value => words.includes(value), `one of ${words.join(', ')}`)

export const flag = shape(value => typeof value === 'boolean', 'true or false')

/** @param {number} [least] @param {number} [most] */
export const number = (least = 0, most = 1e15) =>
  shape(
    value => typeof value === 'number' && value >= least && value <= most,
    `a number from ${least} to ${most}`,
  )

/** @param {number} [least] @param {number} [most] */
export const whole = (least = 0, most = 1e15) =>
  shape(
    value => Number.isInteger(value) && value >= least && value <= most,
    `a whole number from ${least} to ${most}`,
  )

/** @param {Shape} each @param {number} [most] entries */
export function listOf(each, most = 1000) {
  const list = shape(value => Array.isArray(value) && value.length <= most, `a list of at most ${most}`)
  return (/** @type {any} */ value, /** @type {string} */ field) => {
    list(value, field)
    for (let i = 0; i < value.length; i++) each(value[i], `${field}[${i}]`)
  }
}

const anyObject = shape(
  value => typeof value === 'object' && value !== null && !Array.isArray(value),
  'an object',
)

/** @param {Record<string, Shape>} fields required @returns {Shape} ignores other fields */
export function object(fields) {
  const entries = Object.entries(fields)
  return (value, field) => {
    anyObject(value, field)
    for (const [name, each] of entries)
      each(Object.hasOwn(value, name) ? value[name] : undefined, `${field}.${name}`)
  }
}

/** @param {Shape} each @param {number} [most] entries @returns {Shape} an object with any keys */
export const mapOf =
  (each, most = 1000) =>
  (value, field) => {
    anyObject(value, field)
    const entries = Object.entries(value)
    if (entries.length > most)
      throw new Error(`${field} has ${entries.length} entries: there must be at most ${most}`)
    for (const [name, one] of entries) each(one, `${field}.${name}`)
  }

/** @param {Shape} each @returns {Shape} */
export const orNull = each => (value, field) => {
  if (value !== null) each(value, field)
}

/** A `Ledger` (schema.js), in the answer of one drone and in the request to others. */
export const ledger = object({
  channels: text(1000, 1),
  part: whole(),
  parts: whole(1),
  start: whole(),
  sequences: text(1 << 24),
})
