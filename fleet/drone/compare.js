/** A number that may be a fraction; 0 stands for a whole one. */
export const FRACTION = 0.5

/**
 * @param {any} example everything is to be of the same type; of a list, each
 * @param {any} value
 * @param {string} name of the value
 * @throws {Error} with one line, naming what is not like the example
 */
export function compare(example, value, name) {
  const list = Array.isArray(example)
  if (
    typeof example !== typeof value ||
    value === null ||
    list !== Array.isArray(value) ||
    (typeof value === 'number' && !(value >= 0 && value < 1e15 && (example || Number.isInteger(value))))
  )
    throw new Error(`"${name}" is wrong`)
  if (list) for (const each of value) compare(example[0], each, name)
  else if (typeof example === 'object') for (const key in example) compare(example[key], value[key], key)
}
