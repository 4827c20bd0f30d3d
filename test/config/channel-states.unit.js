import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

/** @param {Record<string, unknown>[]} namespaces */
const named = (...namespaces) => ({
  channel: { proxy: { state: { endpoint: 'http://127.0.0.1:3000/state' } }, namespaces },
})
const room = { name: 'room', presence: true, occupancy_channel_prefix: 'occ:' }
const occ = { name: 'occ', history_size: 1, history_ttl: '1h' }

t.test('events and counts need presence', async t => {
  t.same(faultsOf(named({ name: 'room', presence: true, state_proxy_enabled: true })), [])
  t.same(faultsOf(named(room, occ)), [])
  t.same(loadConfig({ base: named(room, occ) }).warnings, [])
  t.match(faultsOf(named({ name: 'room', state_proxy_enabled: true })), [
    'channel.namespaces[0].state_proxy_enabled: true needs presence',
  ])
  t.match(faultsOf(named({ ...room, presence: false }, occ)), [
    'channel.namespaces[0].occupancy_channel_prefix: "occ:" needs presence',
  ])
  t.match(
    faultsOf({ channel: { namespaces: [{ name: 'room', presence: true, state_proxy_enabled: true }] } }),
    ['channel.proxy.state.endpoint: is empty, but channel.namespaces[0].state_proxy_enabled needs it'],
  )
})

t.test('counts go to another namespace, which is not counted itself', async t => {
  const key = 'channel.namespaces[0].occupancy_channel_prefix'
  const counted = 'has an occupancy_channel_prefix itself'
  for (const [prefix, target, line] of /** @type {[string, object, string][]} */ ([
    ['room:', occ, `${key}: namespace "room" ${counted}`],
    [
      'occ:',
      { ...occ, presence: true, occupancy_channel_prefix: 'other:' },
      `${key}: namespace "occ" ${counted}`,
    ],
    ['occ', occ, `${key}: "occ" does not contain a namespace and ":"`],
    ['gone:', occ, `${key}: unknown namespace "gone"`],
    [
      'occ:',
      { name: 'occ', subscription_type: 'map', map: { mode: 'persistent' } },
      `${key}: namespace "occ" has subscription_type "map"`,
    ],
  ]))
    t.match(
      faultsOf(named({ ...room, occupancy_channel_prefix: prefix }, target, { name: 'other' })),
      [line],
      prefix,
    )
  t.match(loadConfig({ base: named(room, { name: 'occ' }) }).warnings, [/namespace "occ" has no history/])
})
