import { createRoot } from 'react-dom/client'
import './ui/base.css'
import { App } from './app/app.tsx'

createRoot(document.getElementById('root')!).render(<App />)
