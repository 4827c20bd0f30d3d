/**
 * @template {Uint8Array | Uint16Array | Uint32Array | Float64Array} T
 * @param {T} array
 * @param {number} size elements, at least as many as there are
 * @returns {T} a larger one that begins like it
 */
export function enlarge(array, size) {
  const larger = new /** @type {any} */ (array).constructor(size)
  larger.set(array)
  return larger
}
