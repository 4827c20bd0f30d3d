// Connection strings of PostgreSQL: a URL, or `key=value` pairs.
// https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING

/**
 * @typedef {object} Dsn
 * @property {Record<string, any>} client options of `pg`, without TLS
 * @property {string} sslmode `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`
 * @property {{ca: string, cert: string, key: string}} files paths, or ''
 * @property {Record<string, string>} settings of the session
 * @property {number} poolMax 0: not set
 */

const SSL_MODES = Object.freeze(['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'])
/** Ignored parameters of libpq and pgx. */
const IGNORED =
  /^(pool_.*|sslcompression|gssencmode|channel_binding|keepalives.*|tcp_user_timeout|krbsrvname|default_query_exec_mode|(statement|description)_cache_.*|target_session_attrs|passfile|client_encoding|fallback_application_name|min_read_buffer_size)$/
const WHOLE = /^\d{1,9}$/
/** `key = value` or `key = 'value'`, with escaped quotes and backslashes. */
const PAIR = /\s*([a-z_][a-z0-9_.]*)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?=\s|$)\s*/iy

/** @param {string} text */
const unescaped = text => text.replaceAll(/\\(.)/gs, '$1')

/** @param {string} dsn */
function readPairs(dsn) {
  /** @type {Record<string, string>} */
  const words = {}
  PAIR.lastIndex = 0
  while (PAIR.lastIndex < dsn.length) {
    const found = PAIR.exec(dsn)
    if (found === null) throw new Error('is neither a postgres:// URL nor pairs like host=... dbname=...')
    words[found[1]] = unescaped(found[2] ?? found[3])
  }
  return words
}

/** @param {string} dsn @returns {Record<string, string>} */
function readUrl(dsn) {
  // The host may be in the query; URL requires one: use `-`.
  const text = dsn.replace(/^(\w+:\/\/(?:[^/?#]*@)?)(?=[/?]|$)/, '$1-')
  const [, hosts = ''] = /^\w+:\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(text) ?? []
  if (hosts.includes(',')) throw new Error('has several hosts; use one, or a proxy in front of them')
  if (!URL.canParse(text)) throw new Error('is not a valid postgres:// URL; encode special characters as %XX')
  const { hostname, port, username, password, pathname, searchParams } = new URL(text)
  try {
    return {
      host: hostname === '-' ? '' : decodeURIComponent(hostname.replaceAll(/^\[|\]$/g, '')),
      port,
      user: decodeURIComponent(username),
      password: decodeURIComponent(password),
      dbname: decodeURIComponent(pathname.slice(1)),
      ...Object.fromEntries(searchParams),
    }
  } catch {
    throw new Error('has an invalid % escape')
  }
}

/** @param {Record<string, string>} words @param {string} name @param {number} max */
function number(words, name, max) {
  const text = words[name] ?? ''
  if (text === '') return 0
  if (!WHOLE.test(text) || Number(text) > max)
    throw new Error(`has a ${name} that is not between 0 and ${max}`)
  return Number(text)
}

/**
 * Errors follow the name of the option, without the DSN and its password.
 * @param {string} dsn
 * @returns {Dsn}
 * @throws {Error}
 */
export function parseDsn(dsn) {
  if (dsn.trim() === '') throw new Error('is empty')
  const words = /^postgres(ql)?:\/\//i.test(dsn) ? readUrl(dsn) : readPairs(dsn)
  const { host, hostaddr, user, password, dbname, database, application_name, options, ...others } = words
  const { sslmode = 'prefer', sslrootcert = '', sslcert = '', sslkey = '' } = words
  if ((host ?? '').includes(',')) throw new Error('has several hosts; use one, or a proxy in front of them')
  if (!SSL_MODES.includes(sslmode))
    throw new Error(`has an unknown sslmode; use one of ${SSL_MODES.join(', ')}`)
  const port = number(words, 'port', 65535)
  const timeout = number(words, 'connect_timeout', 3600)
  const poolMax = number(words, 'pool_max_conns', 10_000)
  /** @type {Record<string, string>} */
  const settings = {}
  const own = ['port', 'connect_timeout', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey']
  for (const [name, value] of Object.entries(others))
    if (!own.includes(name) && !IGNORED.test(name)) settings[name] = value
  const server = hostaddr || host
  const name = dbname || database
  return {
    client: {
      ...(server && { host: server }),
      ...(port > 0 && { port }),
      ...(user && { user }),
      ...(password && { password }),
      ...(name && { database: name }),
      ...(options && { options }),
      ...(timeout > 0 && { connectionTimeoutMillis: timeout * 1000 }),
      application_name: application_name || 'halley',
    },
    // No TLS over Unix sockets.
    sslmode: server?.startsWith('/') ? 'disable' : sslmode,
    files: { ca: sslrootcert, cert: sslcert, key: sslkey },
    settings,
    poolMax,
  }
}
