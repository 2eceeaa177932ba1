import { open } from 'node:fs/promises'

/** Makes the names in a folder durable: a file that was made or renamed there has its name after a power failure too. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}
