import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:https'
import { createSecureContext } from 'node:tls'
import type { Logger } from 'pino'
import type { Config } from '../../process/config.ts'

type TlsFiles = NonNullable<Config['tls']>

/**
 * Reads the certificate and the key, and checks that they match. Throws an Error with one sentence that names the
 * setting.
 */
export function readTls({ certFile, keyFile }: TlsFiles): { cert: Buffer; key: Buffer } {
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

/**
 * Reads the files again on SIGHUP, for new connections. Open connections keep their certificate. If the files cannot be
 * used, nothing changes and kith logs an error. Before `apply`, the signal has no effect, but does not end the process
 * either.
 */
export function reloadTlsOnHangup(files: TlsFiles, logger: Logger) {
  let server: Server | undefined
  let endsAt: Date | undefined
  const remember = ({ cert }: { cert: Buffer }) => {
    endsAt = new X509Certificate(cert).validToDate
  }
  const reload = () => {
    if (!server) return
    try {
      const pair = readTls(files)
      server.setSecureContext(pair)
      remember(pair)
      logger.info('reloaded the TLS certificate')
    } catch (error) {
      logger.error(
        { problem: (error as Error).message },
        'the TLS files cannot be used: the old certificate stays in use',
      )
    }
  }
  process.on('SIGHUP', reload)
  return {
    apply: (started: Server): void => {
      server = started
      remember(readTls(files))
    },
    /** The end of the certificate for new connections. Undefined before `apply`. */
    endsAt: () => endsAt,
    stop: () => process.off('SIGHUP', reload),
  }
}
