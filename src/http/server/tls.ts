import { readFileSync } from 'node:fs'
import type { Server } from 'node:https'
import { createSecureContext } from 'node:tls'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'

type Files = NonNullable<Config['tls']>

/** Certificate and key, which are of one pair. Throws an Error of one sentence that names the setting. */
export function readTls({ certFile, keyFile }: Files): { cert: Buffer; key: Buffer } {
  const pair = { cert: read('TLS_CERT_FILE', certFile), key: read('TLS_KEY_FILE', keyFile) }
  try {
    createSecureContext(pair)
  } catch (cause) {
    const { message } = cause as Error
    throw new Error(`TLS_CERT_FILE ${certFile} and TLS_KEY_FILE ${keyFile} cannot be used: ${message}`, { cause })
  }
  return pair
}

function read(setting: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new Error(`${setting} names ${path}, which cannot be read: ${(cause as Error).message}`, { cause })
  }
}

export type TlsReload = { apply(server: Server): void; stop(): void }

/**
 * Reads the files again on SIGHUP, for connections that come then; those that are open stay as they are. Files that
 * cannot be used change nothing, and the log says so. Until `apply` the signal is without effect, and not deadly.
 */
export function reloadTlsOnHangup(files: Files, logger: Logger): TlsReload {
  let server: Server | undefined
  const reload = () => {
    if (!server) return
    try {
      server.setSecureContext(readTls(files))
      logger.info('the TLS files were read again')
    } catch (error) {
      logger.error({ problem: (error as Error).message }, 'the TLS files were not taken: the old certificate stays')
    }
  }
  process.on('SIGHUP', reload)
  return {
    apply: started => {
      server = started
    },
    stop: () => process.off('SIGHUP', reload),
  }
}
