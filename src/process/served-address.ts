import { readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const fileIn = (dataDir: string) => join(dataDir, 'address.json')

/** Writes the address of the service that uses a data folder there, for the commands of the machine. Returns what removes it. */
export async function publishAddress(dataDir: string, address: string): Promise<() => Promise<void>> {
  await writeFile(fileIn(dataDir), JSON.stringify({ address, pid: process.pid }))
  return () => rm(fileIn(dataDir), { force: true })
}

/** The address of the service that runs on a data folder. Undefined if none runs. */
export function readServedAddress(dataDir: string): string | undefined {
  try {
    const { address, pid } = JSON.parse(readFileSync(fileIn(dataDir), 'utf8')) as { address: string; pid: number }
    return isRunning(pid) ? address : undefined
  } catch {
    return undefined
  }
}

/** A process that was killed leaves its file. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // A process of another user runs, but takes no signals of this one.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
