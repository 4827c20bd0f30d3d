import { randomBytes } from 'node:crypto'
import t from 'tap'
import { cloudConfigOf } from './machine.js'

const PLACES = { dial: { controller: '203.0.113.7:7400' }, listen: { listen: '0.0.0.0:7410' } }
/** Bytes: half of what EC2 takes. */
const MOST = 8192

/** Like those of users: keys that cannot be compressed. */
const drone = () => ({
  id: 'ignored',
  run: randomBytes(4).toString('hex'),
  secret: randomBytes(32).toString('hex'),
  allow: ['gateway-1.eu.example.org:8000', 'gateway-2.us.example.org:8000', '203.0.113.77:443'],
  apiKey: randomBytes(48).toString('base64url'),
  tokenSecret: randomBytes(64).toString('hex'),
})

for (const [how, place] of Object.entries(PLACES))
  t.test(`user data of drones that ${how} is below 8 KB with two keys and three targets`, async t => {
    for (let i = 0; i < 20; i++) {
      const { size } = await cloudConfigOf({
        config: { ...drone(), ...place },
        sha256: randomBytes(32).toString('hex'),
      })
      if (i === 0 || size >= MOST) t.ok(size < MOST, `${size} of ${MOST} bytes`)
    }
  })

t.test('user data too long for EC2 is refused with the size of its parts', async t => {
  const allow = Array.from({ length: 2000 }, () => `${randomBytes(8).toString('hex')}.example.org:8000`)
  await t.rejects(cloudConfigOf({ config: { ...drone(), ...PLACES.dial, allow } }), {
    name: 'Error',
    message:
      /^the user data of a drone has \d+ compressed bytes, more than the 16384 of EC2: its configuration is too long \(2000 targets in --allow, --api-key, --token-secret\)$/,
  })
})

t.test('only root can read the secret, and the program is pinned by its hash', async t => {
  const config = { ...drone(), ...PLACES.dial }
  const sha256 = randomBytes(32).toString('hex')
  const { config: made } = await cloudConfigOf({ config, sha256 })
  const files = /** @type {{path: string, permissions?: string, content: string}[]} */ (made.write_files)
  for (const key of [config.secret, config.apiKey, config.tokenSecret])
    t.match(
      files.filter(({ content }) => content.includes(key)),
      [{ path: '/etc/halley/drone.json.in', permissions: '0600' }],
    )
  t.match(
    files.filter(({ content }) => content.includes(sha256)).map(({ path }) => path),
    ['/etc/systemd/system/halley-drone.service'],
  )
})
