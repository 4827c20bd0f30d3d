// The line of progress of the fleet's commands.

import t from 'tap'
import { Progress } from '../../fleet/cli/common.js'

t.test('its text does not act on the terminal', async t => {
  let said = ''
  const say = (/** @type {string} */ text) => void (said += text)
  const hostile = 'd1: a\x1b[2Jb\x9b2J\rc'
  const escaped = String.raw`d1: a\u001b[2Jb\u009b2J\u000dc`
  const progress = new Progress(say, { isTTY: true, columns: 80 })
  progress.show(hostile)
  progress.line(hostile)
  t.equal(said, `\r\x1b[2K${escaped}\r\x1b[2K${escaped}\n`)
  said = ''
  new Progress(say, {}).show(hostile)
  t.equal(said, `${escaped}\n`)
})
