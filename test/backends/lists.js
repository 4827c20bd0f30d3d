// Lists that tests compare.

/** @param {number} count @param {number} [first] @returns {number[]} consecutive numbers */
export const numbers = (count, first = 0) => Array.from({ length: count }, (_, i) => first + i)

/** @param {any[]} list @param {string} name @returns {any[]} one property of each item */
export const pluck = (list, name) => list.map(item => item[name])
