let code: string | null = null

/** Takes the one-time code of a link to sign in or of an invitation out of the address, so that it stays in no history, even if the page fails. */
export function hideSignInCode(): void {
  code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code !== null) history.replaceState(history.state, '', location.pathname + location.search)
}

/** The code of the link that opened the document, once. */
export function takeSignInCode(): string | null {
  const taken = code
  code = null
  return taken
}
