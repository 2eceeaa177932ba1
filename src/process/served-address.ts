import { readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const fileIn = (dataDir: string) => join(dataDir, 'address.json')

/**
 * Writes the address of the service into its data folder, for the commands on this machine. Returns a function that
 * removes it.
 */
export async function publishAddress(dataDir: string, address: string): Promise<() => Promise<void>> {
  await writeFile(fileIn(dataDir), JSON.stringify({ address, pid: process.pid }))
  return () => rm(fileIn(dataDir), { force: true })
}

/** The address of the service that runs on a data folder. Undefined if no service runs. */
export function readServedAddress(dataDir: string): string | undefined {
  try {
    const { address, pid } = JSON.parse(readFileSync(fileIn(dataDir), 'utf8')) as { address: string; pid: number }
    return isRunning(pid) ? address : undefined
  } catch {
    return undefined
  }
}

/** Whether a process still runs. A killed process leaves its file behind. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // The process runs, but belongs to another user and accepts no signals from this one.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
