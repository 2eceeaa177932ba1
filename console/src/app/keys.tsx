import {
  createContext,
  type Dispatch,
  type ReactNode,
  type SetStateAction,
  useContext,
  useEffect,
  useRef,
  useState,
} from 'react'

/** A keyboard shortcut: one key, a sequence of two such as "g p", or one with Ctrl or ⌘ such as "Ctrl+k". */
export type Shortcut = { keys: string; description: string; action: () => void }

const KeysContext = createContext<[Shortcut[], Dispatch<SetStateAction<Shortcut[]>>]>([[], () => {}])

/** The maximum time between the two keys of a shortcut. */
const sequenceMs = 1_000

/** Whether the key goes into a field, or opens or closes something. Such a key is no shortcut. */
function isTaken(event: KeyboardEvent): boolean {
  const { target, altKey, defaultPrevented } = event
  if (altKey || defaultPrevented) return true
  const element = target instanceof Element ? target : null
  const fields = isCommand(event) ? '' : 'input, textarea, select, [contenteditable], [role=listbox], [role=menu], '
  return element?.closest(`${fields}[role=dialog], [role=alertdialog]`) != null
}

const isCommand = ({ ctrlKey, metaKey }: KeyboardEvent) => ctrlKey || metaKey

/** Listens for the shortcuts of the pages below it. */
export function KeysProvider({ children }: { children: ReactNode }) {
  const state = useState<Shortcut[]>([])
  const current = useRef(state[0])
  current.current = state[0]
  useEffect(() => {
    let [first, firstAt] = ['', 0]
    const listen = (event: KeyboardEvent) => {
      if (isTaken(event)) return
      const key = isCommand(event) ? `Ctrl+${event.key}` : event.key
      const sequence = event.timeStamp - firstAt < sequenceMs ? `${first} ${key}` : key
      const found =
        current.current.findLast(({ keys }) => keys === sequence) ??
        current.current.findLast(({ keys }) => keys === key)
      ;[first, firstAt] = [key, event.timeStamp]
      if (!found) return
      event.preventDefault()
      first = ''
      found.action()
    }
    window.addEventListener('keydown', listen)
    return () => window.removeEventListener('keydown', listen)
  }, [])
  return <KeysContext value={state}>{children}</KeysContext>
}

/** The shortcuts that work on this page, for the dialog that lists them. */
export const useShortcuts = (): Shortcut[] => useContext(KeysContext)[0]

/** Adds a shortcut while the component is shown. */
export function useShortcut(keys: string, description: string, action: () => void): void {
  const [, setList] = useContext(KeysContext)
  const latest = useRef(action)
  latest.current = action
  useEffect(() => {
    const shortcut = { keys, description, action: () => latest.current() }
    setList(before => [...before, shortcut])
    return () => setList(before => before.filter(other => other !== shortcut))
  }, [keys, description, setList])
}
