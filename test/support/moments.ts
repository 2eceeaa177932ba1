export async function nextMillisecond(): Promise<void> {
  const now = Date.now()
  while (Date.now() === now) await new Promise(setImmediate)
}

/** Returns a time after all changes so far and before all later ones. */
export async function momentBetween(): Promise<string> {
  await nextMillisecond()
  const at = new Date().toISOString()
  await nextMillisecond()
  return at
}
