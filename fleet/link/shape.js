// Shapes of external values. A shape throws a one-line error: the field, its value, and the requirement.

/** @typedef {(value: any, field: string) => void} Shape */

const SHOWN = 60

/** @param {any} value */
function show(value) {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}...` : text
}

/** @param {(value: any) => boolean} fits @param {string} must the requirement @returns {Shape} */
export const shape = (fits, must) => (value, field) => {
  if (value === undefined) throw new Error(`${field} is missing: it must be ${must}`)
  if (!fits(value)) throw new Error(`${field} is ${show(value)}: it must be ${must}`)
}

/** @param {number} [max] letters @param {number} [min] */
export const text = (max = 1000, min = 0) =>
  shape(
    value => typeof value === 'string' && value.length >= min && value.length <= max,
    min > 0 ? `text of ${min} to ${max} letters` : `text of at most ${max} letters`,
  )

/** @param {RegExp} pattern @param {string} must */
export const matching = (pattern, must) =>
  shape(value => typeof value === 'string' && pattern.test(value), must)

/** @param {...string} words */
export const oneOf = (...words) => shape(value => words.includes(value), `one of ${words.join(', ')}`)

export const flag = shape(value => typeof value === 'boolean', 'true or false')

/** @param {number} [min] @param {number} [max] */
export const number = (min = 0, max = 1e15) =>
  shape(value => typeof value === 'number' && value >= min && value <= max, `a number from ${min} to ${max}`)

/** @param {number} [min] @param {number} [max] */
export const whole = (min = 0, max = 1e15) =>
  shape(
    value => Number.isInteger(value) && value >= min && value <= max,
    `a whole number from ${min} to ${max}`,
  )

/** @param {Shape} each @param {number} [max] entries */
export function listOf(each, max = 1000) {
  const list = shape(value => Array.isArray(value) && value.length <= max, `a list of at most ${max}`)
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

/** @param {Shape} each @param {number} [max] entries @returns {Shape} an object with any keys */
export const mapOf =
  (each, max = 1000) =>
  (value, field) => {
    anyObject(value, field)
    const entries = Object.entries(value)
    if (entries.length > max)
      throw new Error(`${field} has ${entries.length} entries: there must be at most ${max}`)
    for (const [name, one] of entries) each(one, `${field}.${name}`)
  }

/** @param {Shape} each @returns {Shape} */
export const orNull = each => (value, field) => {
  if (value !== null) each(value, field)
}

/** A `Ledger` (schema.js), in the reply of a drone and in the request to others. */
export const ledger = object({
  channels: text(1000, 1),
  part: whole(),
  parts: whole(1),
  start: whole(),
  sequences: text(1 << 24),
})
