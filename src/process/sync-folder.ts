import { open } from 'node:fs/promises'

/** Makes the names in a folder durable: a created or renamed file keeps its name after a power failure. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}
