import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import * as sdk from '@aws-sdk/client-ec2'
import t from 'tap'
import { packProgram, readProgram, saveProgram } from '../../../fleet/program.js'
import { LaunchError, ProviderError } from '../../../fleet/providers/contract.js'
import { ec2 } from '../../../fleet/providers/ec2/index.js'
import { tempDir } from '../../kit/folders.js'
import { unless } from '../../kit/needs.js'
import { Moto, NEWEST, NEWEST_ARM } from './moto.js'
import { alone, configs, REGIONS, Truth } from './truth.js'

process.env.AWS_ACCESS_KEY_ID = 'AKIAIOSFODNN7EXAMPLE'
process.env.AWS_SECRET_ACCESS_KEY = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true'
for (const name of ['AWS_PROFILE', 'AWS_REGION', 'AWS_DEFAULT_REGION']) delete process.env[name]

const CAPACITY =
  'We currently do not have sufficient t3.small capacity in the Availability Zone you requested (eu-west-1a).'
const VCPU =
  'You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to.'

// Without moto, its installation takes a while.
t.setTimeout(400_000)
const moto = await Moto.start().catch(error => {
  t.plan(0, /** @type {string} */ (unless(false, `no moto_server: ${error.message.split('\n')[0]}`)))
  process.exit()
})
t.teardown(() => moto.stop())
t.afterEach(() => moto.faults.clear())
const dir = tempDir(t)

const flags = {
  region: ['us-east-1,eu-west-1', 'ap-southeast-2'],
  controller: '203.0.113.7:7000',
  endpoint: moto.url,
}
const options = { dir, flags }
const quiet = () => {}
const truth = new Truth(moto.url)
t.teardown(() => truth.close())
const { ask, living, groups, groupsIn, tags, userData } = truth

t.test('a dry run lists all resources and launches nothing', async t => {
  const drones = configs(7)
  const { lines, price } = await ec2.plan({ drones, ...options })
  const text = lines.join('\n')
  const { run } = drones[0]
  for (const part of [
    `run ${run}: 7 drones on EC2, in 3 regions`,
    'us-east-1: 3 x t3.small (x86_64, 2 vCPU, 2.0 GB), on-demand',
    'eu-west-1: 2 x t3.small',
    'drones d6-d7',
    `image ${NEWEST} ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20250610 of 2025-06-10`,
    `security group halley-${run} in each region, removed by stop; in: nothing; out: everything`,
    `halley:run=${run} halley:drones=d1-d3`,
    'time limit 2 h',
    'drones dial 203.0.113.7:7000',
    `drone program: SHA-256 ${(await packProgram()).sha256}, `,
    '198.51.100.4:8000',
    '  |   shutdown -P',
  ])
    t.ok(text.includes(part), part)
  t.match(text, /user data: \d+ of 16384 bytes/)
  t.notMatch(text, '5e5e', 'the plan does not show the secret')
  t.ok(price !== null && price.hourly > 7 * 0.02 && price.hourly < 7 * 0.05, JSON.stringify(price))
  t.match(price?.note, /until the time limit of 2 h .*estimate/)
  t.notOk(
    moto.calls.some(call => !call.startsWith('Describe')),
    'all calls are Describe...',
  )
})

t.test('flags select spot instances, another architecture and an SSH key', async t => {
  await ask('eu-west-1', new sdk.CreateKeyPairCommand({ KeyName: 'mine' }))
  const own = {
    'instance-type': 't4g.micro',
    spot: true,
    'max-price': '0.01',
    'key-name': 'mine',
    'time-limit': '45m',
    region: ['eu-west-1'],
  }
  const drones = configs(1)
  const plan = await ec2.plan({ drones, dir, flags: { ...flags, ...own } })
  t.match(plan.lines.join('\n'), /1 x t4g.micro \(arm64.*spot \(at most \$0.01\/h each\)/)
  t.match(plan.lines.join('\n'), /in: TCP 22 from 203\.0\.113\.7\/32 \(ssh\)/)
  t.match(plan.price?.note, /current spot price/)
  const handles = await ec2.launch(plan, quiet)
  const [instance] = await living(drones[0].run)
  t.equal(instance.ImageId, NEWEST_ARM)
  t.equal(instance.InstanceLifecycle, 'spot')
  t.equal(instance.KeyName, 'mine')
  await ec2.stop(handles, { dir, flags: { ...flags, ...own } }, quiet)
})

/** @param {import('../../../fleet/schema.js').Handle} drone @returns {Promise<string | undefined>} hash in its user data */
const pinnedBy = async ({ where, handle }) =>
  /bootstrap\.js \S+ ([0-9a-f]{64}) /.exec(await userData(where, handle))?.[1]

t.test('drones are launched in three regions, found, and stopped completely', async t => {
  const drones = configs(7)
  const { run } = drones[0]
  const { sha256: current } = await packProgram()
  /** @type {string[]} */
  const progress = []
  const handles = await ec2.launch(await ec2.plan({ drones, ...options }), text => progress.push(text))
  t.match(progress, ['launching 7 instances in us-east-1, eu-west-1, ap-southeast-2'])
  t.equal(progress.at(-1)?.replace(/ \(.*/, ''), '7 of 7 instances launched')
  await readProgram(dir, current)
  t.equal(await pinnedBy(handles[0]), current, 'they request the program of the controller')
  t.strictSame(handles.map(({ id }) => id).sort(), ['d1', 'd2', 'd3', 'd4', 'd5', 'd6', 'd7'])

  const there = await living(run)
  t.strictSame(
    REGIONS.map(region => there.filter(one => one.region === region).length),
    [3, 2, 2],
  )
  t.ok(tags(there, 'halley:ends').every(ends => Math.abs(Date.parse(ends) - Date.now() - 7_200_000) < 60_000))
  t.ok(there.every(one => one.ImageId === NEWEST && one.InstanceType === 't3.small'))
  t.ok(there.every(one => one.MetadataOptions.HttpTokens === 'required'))
  const { Volumes } = await ask(
    'us-east-1',
    new sdk.DescribeVolumesCommand({ Filters: [{ Name: 'tag:halley:run', Values: [run] }] }),
  )
  t.equal(Volumes.length, 3, 'volumes are tagged as well')
  const [{ region, InstanceId }] = there
  t.match(await userData(region, InstanceId), /^#cloud-config\nbootcmd:/)
  const Attribute = 'instanceInitiatedShutdownBehavior'
  const behaviour = await ask(region, new sdk.DescribeInstanceAttributeCommand({ InstanceId, Attribute }))
  t.equal(behaviour.InstanceInitiatedShutdownBehavior.Value, 'terminate')
  const [group] = await groupsIn('eu-west-1', run)
  t.strictSame(group.IpPermissions, [], 'no inbound connections')
  t.strictSame(tags([group], 'halley:run'), [run])

  const found = await ec2.find([run], options)
  t.strictSame(
    found.map(({ id, where, handle }) => [id, where, handle]).sort(),
    handles.map(({ id, where, handle }) => [id, where, handle]).sort(),
  )
  t.ok(found.every(({ state, provider }) => state === 'running' && provider === 'ec2'))

  t.test('stopping two drones keeps the others and their groups', async t => {
    const away = found.filter(({ id }) => id === 'd4' || id === 'd6')
    await ec2.stop(away, options, quiet)
    t.equal((await living(run)).length, 5)
    t.equal(await groups(run), 3)
  })
  t.test('a terminated instance is replaced with the same drone and time limit', async t => {
    const gone = found.filter(({ id }) => id === 'd6')[0]
    const back = await ec2.restart(gone, options)
    t.match(back, { id: 'd6', where: 'ap-southeast-2', run })
    t.not(back.handle, gone.handle)
    const there = await living(run)
    t.equal(new Set(tags(there, 'halley:ends')).size, 1)
    t.equal(
      (await stat(join(dir, 'ec2-launches.json'))).mode & 0o777,
      0o600,
      'what it is known by is private',
    )
    t.equal(await pinnedBy(back), current, 'and with the same program')
  })
  t.test('after an upgrade, a replacement has the same program as the others', async t => {
    const bytes = Buffer.from('the program of an older version')
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    await saveProgram(dir, { sha256, bytes })
    const file = join(dir, 'ec2-launches.json')
    await writeFile(file, (await readFile(file, 'utf8')).replaceAll(current, sha256))
    const [gone] = (await ec2.find([run], options)).filter(
      ({ id, state }) => id === 'd6' && state === 'running',
    )
    await ec2.stop([gone], options, quiet)
    const back = await ec2.restart(gone, options)
    t.equal(await pinnedBy(back), sha256)
    // If the old program no longer exists, the current one is used.
    await rm(join(dir, 'programs', `${sha256}.json.gz`))
    await ec2.stop([back], options, quiet)
    t.equal(await pinnedBy(await ec2.restart(back, options)), current)
  })
  t.test('all drones are stopped; stopping again has no effect', async t => {
    const all = await ec2.find('all', options)
    await ec2.stop(all, options, quiet)
    t.equal((await living(run)).length, 0)
    t.equal(await groups(run), 0)
    await ec2.stop(all, options, quiet)
    t.strictSame(await ec2.find('all', options), [])
    t.match(
      await ec2.find([run], options),
      Array(8).fill({ state: 'gone', note: /User/ }),
      'and why is known',
    )
  })
})

t.test('if a region has no capacity, instances in others are listed, and kept or stopped', async t => {
  moto.refuse('RunInstances', 'eu-west-1', 'InsufficientInstanceCapacity', CAPACITY, { status: 500 })
  const drones = configs(7)
  const { run } = drones[0]
  const error = await ec2.launch(await ec2.plan({ drones, ...options }), quiet).catch(error => error)
  t.ok(error instanceof LaunchError)
  t.match(error.message, /eu-west-1: EC2 has no free instances of this type/)
  t.match(error.message, /^5 of 7 instances were launched: [^\n]+$/)
  t.strictSame(error.launched.map((/** @type {any} */ { id }) => id).sort(), ['d1', 'd2', 'd3', 'd6', 'd7'])
  t.equal((await living(run)).length, 5, 'kept, so far')
  t.equal(await groups(run), 2, 'a region without instances has no group')
  moto.faults.clear()
  await ec2.stop(error.launched, options, quiet)
  t.equal((await living(run)).length + (await groups(run)), 0, 'taken back')
})

t.test('a launch that an account may not make names the quota', async t => {
  const one = { dir, flags: { ...flags, region: 'eu-west-1' } }
  for (const [code, message, words] of /** @type {const} */ ([
    ['VcpuLimitExceeded', VCPU, /eu-west-1: the vCPU quota of this account is too low here/],
    ['MaxSpotInstanceCountExceeded', 'Max spot instance count exceeded', /eu-west-1: the spot quota/],
  ])) {
    moto.refuse('RunInstances', 'eu-west-1', code, message, { status: 400 })
    const drones = configs(1)
    const error = await ec2.launch(await ec2.plan({ drones, ...one }), quiet).catch(error => error)
    t.ok(error instanceof LaunchError, code)
    t.match(error.message, words)
    t.equal(await groups(drones[0].run), 0)
    moto.faults.clear()
  }
})

t.test('if capacity ends during a launch, the launched instances are listed', async t => {
  // moto launches one instance per call, where EC2 may launch fewer than MaxCount: the others need further calls.
  const drones = configs(3)
  const plan = await ec2.plan({ drones, dir, flags: { ...flags, region: 'us-east-1' } })
  let calls = 0
  const error = await ec2
    .launch(plan, text => {
      if (/launched/.test(text) && ++calls === 2)
        moto.refuse('RunInstances', 'us-east-1', 'VcpuLimitExceeded', VCPU)
    })
    .catch(error => error)
  t.match(error.message, /^2 of 3 instances were launched: us-east-1: the vCPU quota/)
  t.strictSame(
    error.launched.map((/** @type {any} */ { id }) => id),
    ['d1', 'd2'],
  )
  moto.faults.clear()
  await ec2.stop(error.launched, options, quiet)
})

t.test('throttled calls are repeated, and a group in use is retried', async t => {
  moto.refuse('RunInstances', 'us-east-1', 'RequestLimitExceeded', 'Request limit exceeded.', {
    status: 503,
    times: 2,
  })
  moto.refuse(
    'DeleteSecurityGroup',
    'us-east-1',
    'DependencyViolation',
    'resource sg-1 has a dependent object',
    { times: 1 },
  )
  const drones = configs(1)
  const one = { dir, flags: { ...flags, region: 'us-east-1' } }
  const handles = await ec2.launch(await ec2.plan({ drones, ...one }), quiet)
  t.equal(handles.length, 1)
  /** @type {string[]} */
  const progress = []
  await ec2.stop(handles, one, text => progress.push(text))
  t.match(progress.join('\n'), /waiting for instances to release security group sg-\w+/)
  t.equal(await groups(drones[0].run), 0)
})

t.test('listening drones have one port, open only to the controller, and known addresses', async t => {
  const drones = configs(2, { controller: undefined, listen: '0.0.0.0:7410' })
  const own = { dir, flags: { ...flags, controller: '203.0.113.7', region: ['eu-west-1'] } }
  const plan = await ec2.plan({ drones, ...own })
  t.match(plan.lines.join('\n'), /in: TCP 7410 from 203\.0\.113\.7\/32 \(controller\)/)
  const handles = await ec2.launch(plan, quiet)
  t.match(handles, [{ address: /^\d+\.\d+\.\d+\.\d+$/ }, { address: /^\d+\./ }])
  const [group] = await groupsIn('eu-west-1', drones[0].run)
  t.match(group.IpPermissions, [
    { IpProtocol: 'tcp', FromPort: 7410, ToPort: 7410, IpRanges: [{ CidrIp: '203.0.113.7/32' }] },
  ])
  t.equal(group.IpPermissions.length, 1)
  await ec2.stop(handles, own, quiet)
})

t.test('another process finds orphaned drones by tag in all regions and stops them', async t => {
  const drones = configs(3)
  const { run } = drones[0]
  await ec2.launch(await ec2.plan({ drones, ...options }), quiet)
  const stdout = await alone(
    `const options = { dir: '/nonexistent', flags: { endpoint: '${moto.url}' } }
      const found = await ec2.find('all', options)
      await ec2.stop(found, options, () => {})
      console.log(JSON.stringify(found))`,
    process.env,
  )
  t.match(
    JSON.parse(stdout)
      .map((/** @type {any} */ { id, run, where }) => `${run} ${id} ${where}`)
      .sort(),
    [`${run} d1 us-east-1`, `${run} d2 eu-west-1`, `${run} d3 ap-southeast-2`],
  )
  t.equal((await living(run)).length + (await groups(run)), 0)

  t.test('a leftover security group is removed even without drones', async t => {
    await ask(
      'eu-west-1',
      new sdk.CreateSecurityGroupCommand({
        GroupName: 'halley-run-lost',
        Description: 'left over',
        TagSpecifications: [
          { ResourceType: 'security-group', Tags: [{ Key: 'halley:run', Value: 'run-lost' }] },
        ],
      }),
    )
    await ec2.stop([], options, quiet)
    t.equal(await groups('run-lost'), 0)
  })
})

t.test('invalid plans are one-line errors before any launch', async t => {
  const before = moto.calls.length
  const listening = { controller: undefined, listen: '0.0.0.0:7410' }
  const allow = Array.from(
    { length: 4000 },
    (_, i) => `h${Math.imul(i + 1, 0x9e3779b1).toString(36)}.example.org`,
  )
  for (const [own, words, more] of /** @type {[Record<string, any>, RegExp, object?][]} */ ([
    [{ region: 'eu-wst-1' }, /^unknown region eu-wst-1; similar: eu-west-1, /],
    [{ region: 'Europe' }, /--region "Europe" is not a region/],
    [{ region: undefined }, /^no region: pass --region, or set AWS_REGION/],
    [{ 'instance-type': 't9.small' }, /us-east-1: --instance-type: .*t9\.small/],
    [{ image: 'ami-12345678' }, /--image: .*ami-12345678/],
    [{ image: NEWEST, 'instance-type': 't4g.small' }, /is for x86_64, the instance type is arm64/],
    [{ 'key-name': 'nobody' }, /--key-name: .*nobody/],
    [{ region: 'us-east-1', subnet: 'subnet-12345678' }, /--subnet: .*subnet-12345678/],
    [{ subnet: 'subnet-12345678' }, /--subnet: 1 for 3 regions/],
    [{ 'max-price': '0.1' }, /--max-price requires --spot/],
    [{ spot: true, 'max-price': 'cheap' }, /--max-price "cheap" is not a price/],
    [{ 'time-limit': '2' }, /--time-limit "2" is not a time/],
    [{ 'node-version': '18' }, /--node-version "18" is not a version from 20/],
    [{ controller: undefined }, /cannot reach 127\.0\.0\.1: pass .* --controller HOST:PORT/],
    [{ controller: undefined }, /cannot reach 192\.168\.0\.7/, { controller: '192.168.0.7:7000' }],
    [{ controller: undefined }, /--controller ADDRESS/, listening],
    [{ endpoint: 'http://127.0.0.1:1' }, /EC2 cannot be reached: connect ECONNREFUSED/],
    [{}, /the user data of a drone has \d+ compressed bytes, more than the 16384 of EC2/, { allow }],
  ])) {
    const plan = ec2.plan({ drones: configs(2, more), dir, flags: { ...flags, ...own } })
    const error = await plan.catch(error => error)
    t.ok(error instanceof ProviderError, String(error))
    t.match(error.message, words)
    t.notMatch(error.message, /\n/)
  }
  t.notOk(moto.calls.slice(before).some(call => !call.startsWith('Describe')))
})

t.test('refused credentials are reported immediately', async t => {
  for (const [code, words] of /** @type {const} */ ([
    ['RequestExpired', /^the AWS credentials have expired/],
    ['AuthFailure', /the AWS credentials were not accepted/],
    ['UnauthorizedOperation', /do not allow ec2:DescribeRegions; docs\/fleet-ec2\.md/],
    ['OptInRequired', /has not opted in/],
  ])) {
    moto.refuse('DescribeRegions', 'us-east-1', code, 'said by AWS.')
    const error = await ec2.plan({ drones: configs(1), ...options }).catch(error => error)
    t.match(error.message, words)
  }
  // A metadata service that accepts connections and never responds, as in some networks.
  const hole = createServer(() => {}).listen(0, '127.0.0.1')
  t.teardown(() => hole.close())
  await once(hole, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (hole.address())
  const stdout = await alone(
    `const began = Date.now()
    await ec2.find('all', { dir: '/nonexistent', flags: {} }).catch(error => console.log(error.message))
    console.log(Date.now() - began < 20000 ? 'soon' : 'late')`,
    {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://127.0.0.1:${port}`,
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
    },
  )
  t.match(stdout, /^no AWS credentials \(.*\): set AWS_ACCESS_KEY_ID[^\n]*\nsoon\n$/)
})
