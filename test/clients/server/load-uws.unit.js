import t from 'tap'
import { installCommand, loadUws, whyNot } from '../../../src/clients/server/load-uws.js'

const LOADER =
  'This version of uWS.js supports only Node.js versions 16, 18, 20, 21, 22, 24 and 25 on (glibc) Linux.'
const SO = '/app/node_modules/uWebSockets.js/uws_linux_x64_127.node'

/** An error as the package throws it. */
const fromLoader = cause => new Error(`${LOADER}\n\n${cause}`)
const noBinary = fromLoader(
  "Error: Cannot find module './uws_linux_x64_147.node'\nRequire stack:\n- /home/me/app/node_modules/uWebSockets.js/uws.js",
)

const oldLibrary = fromLoader(
  `Error: /lib/x86_64-linux-gnu/libc.so.6: version \`GLIBC_2.38' not found (required by ${SO})`,
)
const missing = Object.assign(new Error("Cannot find package 'uWebSockets.js'"), {
  code: 'ERR_MODULE_NOT_FOUND',
})
const musl = fromLoader('Error: Error loading shared library ld-linux-x86-64.so.2: No such file or directory')

t.test('the reason includes the fix', async t => {
  t.match(installCommand(false), /^npm install uWebSockets\.js@https:\S+v20\.67\.0\.tar\.gz$/)
  t.match(installCommand(true), /^npm pkg set "overrides\[uWebSockets\.js\]=https:.*" && npm install$/)
  for (const [error, options, reason] of /** @type {[Error, any, string][]} */ ([
    [oldLibrary, { version: 'v22.1.0' }, 'needs glibc 2.38: Debian 13 or Node.js 20'],
    [oldLibrary, { version: 'v20.1.0' }, 'needs glibc 2.38: a newer distribution'],
    ...[false, true].map(isDependency => [
      noBinary,
      { version: 'v26.1.0', isDependency },
      `has no binary for Node.js 26: ${installCommand(isDependency)}`,
    ]),
    [
      noBinary,
      { version: 'v30.0.0', platform: 'linux s390x' },
      'has no binary for Node.js 30 on linux s390x: use Node.js 24 on Debian 13',
    ],
    [missing, {}, 'is not installed: install without --omit=optional'],
    [musl, {}, 'needs glibc, which this system does not have: use an image of Debian 13'],
  ]))
    t.equal(whyNot(error, options), `uWebSockets.js ${reason}`)
})

t.test('an unknown reason is the last line of the error', async t => {
  t.equal(whyNot(new Error('a long story\n\n- no luck\n')), 'uWebSockets.js does not load: no luck')
  for (const thrown of [new Error(''), undefined, null, '', 0])
    t.match(whyNot(thrown), /^uWebSockets\.js does not load: \S/)
})

t.test('loadUws returns the library or the reason', async t => {
  const uws = /** @type {any} */ ({ App: () => {} })
  t.same(await loadUws(async () => ({ default: uws })), { uws, why: '' })
  const why = /^uWebSockets\.js has no binary for Node\.js \d+/
  t.match(await loadUws(() => Promise.reject(noBinary)), { uws: null, why })
})
