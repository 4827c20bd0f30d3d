import t from 'tap'
import { options } from '../../src/config/options.js'
import { readText, readValue } from '../../src/config/read.js'

/** @param {readonly any[]} rows @returns {any[]} these, and those of the objects in their lists */
const all = rows => rows.flatMap(row => [row, ...all(row.members ?? [])])

t.test('every default is valid', async t => {
  // The address of a consumer's Redis is required.
  for (const option of all(options).filter(({ single, default: value }) => !single || value !== '')) {
    const value = readValue(option, option.default)
    t.not(value, undefined, option.path)
    if (option.type === 'string') t.equal(readText(option, option.default), value, option.path)
  }
})

t.test('numbers and durations are checked at their limits', async t => {
  for (const option of all(options).filter(({ type }) => ['int', 'duration'].includes(type))) {
    const { minimum, maximum } = option.schema
    const given = ms => (option.type === 'duration' ? `${ms}ms` : ms)
    for (const value of [minimum, maximum]) t.equal(readValue(option, given(value)), value, option.path)
    t.throws(() => readValue(option, given(minimum - 1)), option.path)
    t.throws(() => readValue(option, given(maximum + 1)), option.path)
  }
})

t.test('a path begins with a slash and does not end with one', async t => {
  const option = options.find(({ path }) => path === 'http_api.handler_prefix')
  for (const path of ['/', '/a', '/a/b', '/é', '/😀']) t.equal(readValue(option, path), path)
  for (const path of ['', 'a', 'a/b', '/a/', '//', '/a//b', '/a b', '/a?b', '/*'])
    t.throws(() => readValue(option, path), { message: `${JSON.stringify(path)} is not a path like` }, path)
})
