import { randomBytes } from 'node:crypto'
import { brotliCompressSync } from 'node:zlib'
import t from 'tap'
import { packDrone } from '../../../fleet/pack.js'
import { squeeze, unpacker, unsqueezer } from '../../../fleet/providers/ec2/squeeze.js'

/** What machines are sent. */
const code = new Function(`return ${unsqueezer()}`)()
const known = [...Buffer.from(unpacker())]

/** @param {import('../../../fleet/providers/ec2/squeeze.js').Squeezed} squeezed */
const unsqueeze = ({ packed, size }) => {
  const text = [...known]
  text.length += size
  return Buffer.from(code(text, known.length, [...packed])).subarray(known.length)
}

t.test('what is squeezed comes back as it was', async t => {
  const noise = randomBytes(3000)
  for (const bytes of [
    Buffer.from(''),
    Buffer.from('a'),
    Buffer.alloc(5000, 'ab'),
    Buffer.alloc(300),
    noise,
  ]) {
    const back = unsqueeze(squeeze(bytes.toString('latin1')))
    t.equal(back.toString(), bytes.toString('latin1'), `${bytes.length} bytes`)
  }
})

t.test('the drone takes less than brotli makes of it, with what unpacks it', async t => {
  const drone = await packDrone()
  const squeezed = squeeze(drone)
  const brotli = brotliCompressSync(drone).length
  const own = squeezed.packed.length + brotliCompressSync(unsqueezer()).length
  t.ok(own < brotli * 0.92, `${own} bytes, brotli ${brotli}`)
  t.equal(unsqueeze(squeezed).toString(), drone)
})
