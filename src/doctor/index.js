export { limitsFile, recipes, serviceFile, sysctlFile } from './recipes.js'
