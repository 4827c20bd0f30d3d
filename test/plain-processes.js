// Loaded into each test file by tap (see package.json): the processes that a test starts are what users start.
//
// tap has its own loader in all of them, and in their children, and so on, which tells it what they load, for coverage and `--changed`.
// Nobody asks for that here, and it costs each one more than it costs to start a worker.

const hooks = /** @type {any} */ (globalThis)[Symbol.for('process-on-spawn@*:singletonId')]
hooks?.listeners.splice(0)
delete process.env.NODE_OPTIONS
