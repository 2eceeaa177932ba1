const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/g

/** Finds a repeated member of an object in a JSON text, at any depth. Programs differ in which of the two they read. */
export function findRepeatedMember(json: string): string | undefined {
  const open: (Set<string> | undefined)[] = []
  let text = ''
  for (const [token] of json.matchAll(tokens)) {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (token !== ':') text = token
    else {
      const members = open.at(-1)
      const name = JSON.parse(text) as string
      if (members?.has(name)) return name
      members?.add(name)
    }
  }
  return undefined
}
