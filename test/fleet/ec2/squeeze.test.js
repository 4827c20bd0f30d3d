import { randomBytes } from 'node:crypto'
import { brotliCompressSync } from 'node:zlib'
import t from 'tap'
import { packDrone } from '../../../fleet/pack.js'
import { squeeze, unsqueezer } from '../../../fleet/providers/ec2/squeeze.js'

/** What machines are sent. @type {(packed: number[], size: number, unpack: boolean) => number[]} */
const unsqueeze = new Function(`return ${unsqueezer()}`)()

t.test('what is squeezed comes back as it was', async t => {
  const noise = randomBytes(3000)
  for (const bytes of [
    Buffer.from(''),
    Buffer.from('a'),
    Buffer.alloc(5000, 'ab'),
    Buffer.alloc(300),
    noise,
  ]) {
    const { packed, size } = squeeze(bytes.toString('latin1'))
    const back = Buffer.from(unsqueeze([...packed], size, true))
    t.equal(back.toString(), bytes.toString('latin1'), `${bytes.length} bytes`)
  }
})

t.test('the drone takes less than brotli makes of it, with what unpacks it', async t => {
  const drone = await packDrone()
  const { packed, size } = squeeze(drone)
  const brotli = brotliCompressSync(drone).length
  const own = packed.length + brotliCompressSync(unsqueezer()).length
  t.ok(own < brotli * 0.92, `${own} bytes, brotli ${brotli}`)
  t.equal(Buffer.from(unsqueeze([...packed], size, true)).toString(), drone)
})
