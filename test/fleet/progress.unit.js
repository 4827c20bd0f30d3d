// The progress line of the fleet commands.

import t from 'tap'
import { Progress } from '../../fleet/cli/common.js'

t.test('escapes control characters', async t => {
  let output = ''
  const say = (/** @type {string} */ text) => void (output += text)
  const hostile = 'd1: a\x1b[2Jb\x9b2J\rc'
  const escaped = String.raw`d1: a\u001b[2Jb\u009b2J\u000dc`
  const progress = new Progress(say, { isTTY: true, columns: 80 })
  progress.show(hostile)
  progress.line(hostile)
  t.equal(output, `\r\x1b[2K${escaped}\r\x1b[2K${escaped}\n`)
  output = ''
  new Progress(say, {}).show(hostile)
  t.equal(output, `${escaped}\n`)
})
