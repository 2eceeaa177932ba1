import { readFile } from 'node:fs/promises'

/** The text of a file, or null if the file does not exist. */
export async function readFileOrNull(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
