/** Resolves with undefined if the file or folder does not exist. */
export const orMissing = <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch(error => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
