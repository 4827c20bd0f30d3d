// Composes the page: one connection, two streams and a map.

import { showCommands } from './commands.js'
import { Connection } from './connection.js'
import { Recovery } from './recovery.js'
import { Room, Self } from './room.js'
import { Cursors } from './sky.js'
import { offerTransports, showStatus } from './status.js'
import { VitalsPanel } from './vitals.js'

const connection = new Connection()
const self = new Self()
const recovery = new Recovery()

showCommands()
showStatus(connection, recovery)
new VitalsPanel(connection, recovery)
new Cursors(connection, self)
new Room(connection, recovery, self)
offerTransports(connection, recovery)
