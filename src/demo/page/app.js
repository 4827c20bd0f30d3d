// Puts the parts of the page together: one client, three channels.

import { showConnection } from './connection.js'
import { Cursors } from './cursors.js'
import { Self } from './people.js'
import { Recovery } from './recovery.js'
import { Room } from './room.js'
import { showCommand } from './terminal.js'
import { VitalsPanel } from './vitals.js'

const { websocket = '', api = '' } = document.documentElement.dataset
const { protocol, host, origin } = location

const client = new Centrifuge(`${protocol === 'https:' ? 'wss' : 'ws'}://${host}${websocket}`)
const self = new Self()
const recovery = new Recovery()
const cursors = new Cursors(client, self)

showCommand(`${origin}${api}`)
showConnection(client, recovery)
new VitalsPanel(client, recovery)
new Room(client, recovery, self, left => cursors.remove(left))
client.on('connected', ({ client: id }) => cursors.connected(id))
client.connect()
