// Composes the page: one connection, three channels.

import { Connection } from './connection.js'
import { Cursors } from './cursors.js'
import { Listener } from './listener.js'
import { Self } from './people.js'
import { Recovery } from './recovery.js'
import { Room } from './room.js'
import { showSnippets } from './snippets.js'
import { showStatus } from './status.js'
import { showCommands } from './terminal.js'
import { TransportSwitch } from './transport-switch.js'
import { VitalsPanel } from './vitals.js'

const connection = new Connection()
const self = new Self()
const recovery = new Recovery()
const cursors = new Cursors(connection, self)

new Listener()
showCommands()
showSnippets()
showStatus(connection, recovery)
new VitalsPanel(connection, recovery)
new Room(connection, recovery, self, left => cursors.remove(left))
connection.on('connected', ({ client: id }) => cursors.connected(id))
new TransportSwitch(connection, recovery)
