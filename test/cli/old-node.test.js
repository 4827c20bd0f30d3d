// Unsupported versions of Node.js.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'acorn'
import t from 'tap'
import { bin } from '../kit/gateway.js'

const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

/**
 * @param {any} t @param {string} version that Node.js says it has
 * @returns {Promise<{code: unknown, stdout: string, stderr: string}>} of `halley --version`
 */
function runAs(t, version) {
  const dir = t.testdir({
    'version.cjs': `Object.defineProperty(process.versions, 'node', { value: ${JSON.stringify(version)} })`,
  })
  const args = ['--require', join(dir, 'version.cjs'), bin, '--version']
  return new Promise(resolve => {
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

t.test('on an unsupported Node.js version it prints one line and exits with 1', async t => {
  for (const version of ['12.22.12', '18.20.8', '19.9.0'])
    t.same(await runAs(t, version), {
      code: 1,
      stdout: '',
      stderr: `halley: requires Node.js 20 or newer, found ${version}; Node.js 24 is recommended\n`,
    })
  t.match(await runAs(t, '20.0.0'), { code: 0, stdout: /^halley \d/, stderr: '' })
  t.match(engines, { node: '>=20' })
})

t.test('bin/halley.js has the syntax of Node.js 12 and no static imports', async t => {
  const { body } = parse(readFileSync(bin, 'utf8'), {
    ecmaVersion: 2020,
    sourceType: 'module',
    allowHashBang: true,
  })
  // ES2019: optional chaining and `??` (ES2020) require Node.js 14.
  t.notMatch(readFileSync(bin, 'utf8'), /\?\.|\?\?/)
  t.notOk(body.some(({ type }) => type === 'ImportDeclaration'))
})
