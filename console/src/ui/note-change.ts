import { createContext, useContext } from 'react'

export const NoteChangeContext = createContext<(name?: string) => void>(() => {})

/**
 * A function that a field calls with its name when its value changes. The dialog around it then asks before it closes,
 * and the form stops showing the error of the previous value.
 */
export const useNoteChange = () => useContext(NoteChangeContext)
