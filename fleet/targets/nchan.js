// nchan: publish and subscribe as a module of nginx. Debian: nginx-light and libnginx-mod-nchan.

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openFilesLimit } from '../runner/proc.js'

const MODULES = [
  '/usr/lib/nginx/modules/ngx_nchan_module.so',
  '/usr/lib64/nginx/modules/ngx_nchan_module.so',
  '/usr/local/lib/nginx/modules/ngx_nchan_module.so',
]

/** Path of publishers, as in drone/engine/lane.js: the channel is in the query, and the body is the message. */
const NCHAN_PUBLISH = '/pub'

/** @returns {{module: string, version: string} | null} null: not installed */
export function findNchan() {
  const module = MODULES.find(existsSync)
  if (module === undefined) return null
  try {
    // It writes to standard error: "nginx version: nginx/1.22.1".
    const output = execFileSync('sh', ['-c', 'nginx -v 2>&1'], { encoding: 'utf8' })
    return { module, version: /nginx\/([\d.]+)/.exec(output)?.[1] ?? '' }
  } catch {
    return null
  }
}

/**
 * Writes its configuration. Messages are not stored, as in the other controls.
 * @param {string} module path @param {import('./index.js').ControlOptions} options
 */
export async function nchanCommand(module, { folder, port, workers }) {
  const files = openFilesLimit()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `  ${name}_temp_path ${join(folder, name)};`,
  )
  const config = `load_module ${module};
daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes ${workers};
worker_rlimit_nofile ${files};
error_log ${join(folder, 'error.log')} warn;
pid ${join(folder, 'nginx.pid')};
events {
  worker_connections ${files};
}
http {
  access_log off;
${temporary.join('\n')}
  keepalive_requests 1000000000;
  nchan_shared_memory_size 256M;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location = /health {
      return 200 '{}';
    }
    location = ${NCHAN_PUBLISH} {
      nchan_publisher http;
      nchan_channel_id $arg_ch;
      nchan_store_messages off;
    }
    location / {
      nchan_subscriber websocket;
      nchan_channel_id $arg_ch;
      nchan_websocket_ping_interval 25s;
    }
  }
}
`
  const file = join(folder, 'nginx.conf')
  await writeFile(file, config)
  return { command: 'nginx', args: ['-p', folder, '-e', join(folder, 'error.log'), '-c', file] }
}
