// Composes the page: one connection, three channels.

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
const cursors = new Cursors(connection, self)

showCommands()
showStatus(connection, recovery)
new VitalsPanel(connection, recovery)
new Room(connection, recovery, self, left => cursors.remove(left))
offerTransports(connection, recovery)
