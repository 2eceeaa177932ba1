import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { link, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { createMasterKeys, type MasterKey, type MasterKeys, masterKeyOf, noMasterKeys } from '../db/master-keys.ts'
import type { Config } from '../process/config.ts'
import { syncFolder } from '../process/sync-folder.ts'

type KeyConfig = Pick<Config, 'masterKeyFile' | 'databaseUrl' | 'dataDir'>

/**
 * The path of the file of the master keys. With an external database and no KITH_MASTER_KEY_FILE it is undefined: there
 * is no master key.
 */
export function keyFilePath({ masterKeyFile, databaseUrl, dataDir }: KeyConfig): string | undefined {
  if (masterKeyFile !== undefined) return resolve(masterKeyFile)
  return databaseUrl === undefined ? join(resolve(dataDir), 'master.key') : undefined
}

/**
 * The master keys of the file. It is read again when it has changed, so that all processes continue while a key is
 * replaced. The file of a data folder may be missing. If the file cannot be used, throws an Error whose message says
 * what to do.
 */
export function openMasterKeys(config: KeyConfig): MasterKeys {
  const path = keyFilePath(config)
  if (path === undefined) return noMasterKeys
  let [keys, state] = [[] as MasterKey[], '']
  const read = () => {
    const { mtimeMs = 0, size = 0, ino = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
    const found = `${mtimeMs} ${size} ${ino}`
    if (found === state) return keys
    const readNow = readKeys(path, config.masterKeyFile === undefined)
    // Without the file, the process continues with the keys that it has.
    if (readNow.length > 0) keys = readNow
    state = found
    return keys
  }
  read()
  return createMasterKeys(() => {
    try {
      return read()
    } catch {
      // Another process may be replacing the file.
      return keys
    }
  })
}

const howToMake = 'Put it back. If there has never been one, write it with: openssl rand -base64 32'

function readKeys(path: string, mayBeMissing: boolean): MasterKey[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && mayBeMissing) return []
    const advice = code === 'ENOENT' ? howToMake : 'Correct KITH_MASTER_KEY_FILE, or the rights of the file.'
    throw new Error(`The file of the master key, ${path}, cannot be read (${code}). ${advice}`)
  }
  const lines = text.split('\n').map(line => line.trim())
  const keys = lines.flatMap((line, index) => {
    if (line === '' || line.startsWith('#')) return []
    const key = masterKeyOf(Buffer.from(line, 'base64'))
    if (!key || !/^[\w+/-]{43}=?$/.test(line))
      throw new Error(`Line ${index + 1} of ${path} is not a master key: 32 bytes in base64. ${howToMake}`)
    return [key]
  })
  if (keys.length === 0) throw new Error(`${path} has no master key. ${howToMake}`)
  return keys
}

const comment = '# The master key of kith. Keep a copy apart from the backups: it opens the keys and secrets in them.'
const newKey = () => randomBytes(32).toString('base64')

/** Creates the file with a new key, mode 600. If another process has created it meanwhile, that file stays. */
export const makeKeyFile = (path: string): Promise<void> => writeKeyFile(path, `${comment}\n${newKey()}\n`, link)

/** Puts a new key before the others. It wraps from now on, and the others still unwrap. */
export async function addMasterKey(path: string): Promise<void> {
  await writeKeyFile(path, `${newKey()}\n${await readFile(path, 'utf8')}`, rename)
}

/** Writes the file under a temporary name and renames it once it is on disk, so that no process reads a part. */
async function writeKeyFile(path: string, text: string, publish: (from: string, to: string) => Promise<void>) {
  const partial = `${path}.${process.pid}.partial`
  const file = await open(partial, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync().finally(() => file.close())
    await publish(partial, path).catch(error => {
      if (error.code !== 'EEXIST') throw error
    })
    await syncFolder(dirname(path))
  } finally {
    await rm(partial, { force: true })
  }
}
