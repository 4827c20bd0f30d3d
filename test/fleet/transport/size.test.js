// The drone travels in EC2's user data: what a transport may weigh in it, and that it needs nothing but Node.

import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import t from 'tap'

const ENTRY = fileURLToPath(new URL('../../../fleet/drone/transport/dialer.js', import.meta.url))
const MOST = 5200

t.test(`all transports have less than ${MOST} bytes, minified and compressed`, async t => {
  const { outputFiles, metafile } = await build({
    entryPoints: [ENTRY],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'silent',
  })
  const size = gzipSync(outputFiles[0].contents, { level: 9 }).length
  t.ok(size < MOST, `${size}`)
  for (const { imports } of Object.values(metafile.outputs))
    for (const { path } of imports) t.match(path, /^node:/)
  for (const path of Object.keys(metafile.inputs)) t.match(path, /fleet\/drone\/transport\//)
})
