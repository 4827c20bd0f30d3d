// The CPU quota of control groups, from files written like the kernel's, and from a real group if one can be created.

import { execFile } from 'node:child_process'
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { cpuQuota, workersFor } from '../../src/metrics/control-groups.js'

const run = promisify(execFile)

/** @param {any} t @param {Record<string, string>} files below one folder: `cgroup`, and groups below `mounts` */
function machine(t, files) {
  const root = t.testdir()
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
  return { cgroup: join(root, 'cgroup'), mounts: join(root, 'mounts') }
}

/** The quota of a group of version 1. @param {string} group @param {number} quota us of 100 ms @returns {Record<string, string>} */
const first = (group, quota) => ({
  [`mounts/${group}/cpu.cfs_quota_us`]: `${quota}\n`,
  [`mounts/${group}/cpu.cfs_period_us`]: '100000\n',
})

/** @type {[title: string, files: Record<string, string>, quota: number | null][]} */
const cases = [
  [
    'a container with one core, in a namespace of its own',
    { cgroup: '0::/\n', 'mounts/cpu.max': '100000 100000\n' },
    1,
  ],
  ['no limit', { cgroup: '0::/\n', 'mounts/cpu.max': 'max 100000\n' }, null],
  ['the root of a machine, which has no such file', { cgroup: '0::/\n' }, null],
  [
    'nested groups: the lowest quota holds, wherever it is',
    {
      cgroup: '0::/system.slice/docker.slice/halley.service\n',
      'mounts/system.slice/cpu.max': '400000 100000\n',
      'mounts/system.slice/docker.slice/cpu.max': '25000 10000\n',
      'mounts/system.slice/docker.slice/halley.service/cpu.max': 'max 100000\n',
    },
    2.5,
  ],
  [
    'version 1, quota of a parent',
    {
      cgroup: '12:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/\n',
      ...first('cpu/docker', 50_000),
      ...first('cpu/docker/abc', -1),
    },
    0.5,
  ],
  [
    "version 1 seen from a container: its path is the host's, its group is the root",
    { cgroup: '3:cpuacct,cpu:/kubepods/pod1:2/abc\n', ...first('cpu,cpuacct', 300_000) },
    3,
  ],
  [
    'both versions at once: the controller is in the first',
    { cgroup: '2:cpu:/web\n0::/user.slice\n', ...first('cpu/web', 150_000) },
    1.5,
  ],
  ['a path with colons', { cgroup: '0::/a/b:c\n', 'mounts/a/b:c/cpu.max': '300000 100000\n' }, 3],
  ['a quota that is no number', { cgroup: '0::/\n', 'mounts/cpu.max': 'many\n' }, null],
  ['outside Linux', {}, null],
]

for (const [title, files, quota] of cases) {
  t.test(`CPU quota: ${title}`, async t => {
    t.equal(cpuQuota(machine(t, files)), quota)
  })
}

t.test('there is one worker per whole core of the quota, at least one, at most one per core', async t => {
  t.equal(workersFor(64, 1), 1)
  t.equal(workersFor(64, 0.1), 1)
  t.equal(workersFor(64, 1.99), 1)
  t.equal(workersFor(64, 2), 2)
  t.equal(workersFor(4, 1000), 4)
  t.equal(workersFor(4, null), 4)
})

t.test('a process in a real group has half a core', async t => {
  const group = ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup']
    .map(mount => join(mount, `halley-test-${process.pid}`))
    .find(folder => {
      try {
        mkdirSync(folder)
        const limits = folder.startsWith('/sys/fs/cgroup/cpu/')
          ? { 'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': '50000' }
          : { 'cpu.max': '50000 100000' }
        for (const [name, text] of Object.entries(limits)) writeFileSync(join(folder, name), text)
        return true
      } catch {
        try {
          rmdirSync(folder)
        } catch {
          // It could not be made.
        }
        return false
      }
    })
  if (group === undefined) return t.pass('not run', { skip: 'control groups cannot be made here' })
  t.teardown(() => rmdirSync(group))
  const module = new URL('../../src/metrics/control-groups.js', import.meta.url).href
  const program = `import { cpuQuota, defaultWorkers } from '${module}'; console.log(cpuQuota(), defaultWorkers())`
  const child = `echo $$ > ${group}/cgroup.procs && exec "${process.execPath}" --input-type=module -e "${program}"`
  const { stdout } = await run('sh', ['-c', child])
  t.equal(stdout, '0.5 1\n')
})
