import { randomUUID } from 'node:crypto'
import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { withConnection } from '../servers/servers.ts'

// PostgreSQL keeps a segment of its log until `archive_command` succeeds for it. The command succeeds once this folder
// has a file with the name of the segment. The service creates the file after the archive has stored the segment. So a
// segment is removed only after it was stored, whichever process is killed. The folder decides whether a server
// archives, because a command of kith may start the server too.
const folderName = 'archive'

/** The folder of files named after archived segments. */
export const archivedFolder = (path: string): string => join(path, folderName)

/** While this file exists, the command does not wait for a segment to be archived. */
export const stoppingFile = (path: string): string => join(path, folderName, 'stopping')

/** Runs one statement on a separate connection. */
export const query = <Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> =>
  withConnection(url, async client => (await client.query<Row>(text)).rows)

const hasFolder = async (path: string): Promise<boolean> =>
  (await stat(archivedFolder(path)).catch(() => undefined)) !== undefined

/**
 * Whether the running server archives. The next server then archives too. A start without an archive opens no
 * connection for this.
 */
export async function isArchiving(url: string, path: string): Promise<boolean> {
  if (!(await hasFolder(path))) return false
  const [row] = await query<{ archive_mode: string }>(url, 'show archive_mode')
  return row?.archive_mode === 'on'
}

/** Sets whether the server of a cluster archives from its next start on. */
export async function setArchiving(path: string, archives: boolean): Promise<void> {
  if (!archives) return rm(archivedFolder(path), { recursive: true, force: true })
  await mkdir(archivedFolder(path), { recursive: true })
  // The server's user must be able to enter the folder, whatever the umask.
  await chmod(archivedFolder(path), 0o755)
}

/** An identifier of the data folder, which a restored copy does not share. */
export async function readFolderId(path: string): Promise<string> {
  const file = join(path, 'archive-id')
  await writeFile(file, randomUUID(), { flag: 'wx', mode: 0o600, flush: true }).catch(error => {
    if (error.code !== 'EEXIST') throw error
  })
  return readFile(file, 'utf8')
}

/** A path as a word of the shell, in a command where PostgreSQL replaces %f and %p. */
export const shellWord = (path: string): string => `'${path.replaceAll("'", String.raw`'\''`).replaceAll('%', '%%')}'`

/**
 * The command waits 2 s, because the service usually archives a segment faster. If it fails, PostgreSQL logs it and
 * tries again.
 */
export async function archiveSettings(path: string): Promise<Record<string, string>> {
  if (!(await hasFolder(path))) return {}
  const isDone = `[ -e ${shellWord(archivedFolder(path))}/%f ] && exit 0`
  const isStopping = `[ -e ${shellWord(stoppingFile(path))} ] && exit 1`
  const loop = `for i in 1 2 3 4 5 6 7 8 9 10; do ${isDone}; ${isStopping}; sleep 0.2; done; exit 1`
  return { archive_mode: 'on', archive_command: loop }
}
