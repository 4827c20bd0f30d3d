/**
 * A folder that is removed after all teardowns of its test. tap alone removes it before teardowns that are registered
 * later, and the programs which these stop may still create files in it (ENOTEMPTY; the teardowns never run then).
 * @param {any} t
 * @param {object} [content] as for `t.testdir`
 * @returns {string} its path
 */
export function testdir(t, content) {
  t.teardown(() => {})
  return t.testdir(content)
}
